#include "image/loose_image.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/fatbin.h"
#include "image/fatbin_builder.h"

namespace heddle::image {
namespace {

using testing::HasSubstr;

const std::string kText =
    "// made at run time: .target sm_30\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n"
    ".visible .entry nothing()\n{\n\tret;\n}\n";

std::vector<Image> images_in(const Result<std::vector<std::byte>>& fatbin) {
  EXPECT_TRUE(fatbin) << (fatbin ? "" : fatbin.error().text);
  const auto fatbins = split_fatbins(*fatbin);
  EXPECT_TRUE(fatbins);
  auto images = read_fatbins(*fatbins);
  EXPECT_TRUE(images);
  return images ? *images : std::vector<Image>{};
}

// An ELF file with one section, as long as it says.
std::string small_cubin(unsigned char abi_version, uint32_t flags) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_ABIVERSION] = abi_version;
  header.e_flags = flags;
  header.e_type = ET_EXEC;
  header.e_shoff = sizeof header;
  header.e_shnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = sizeof header + sizeof section;
  section.sh_size = 20;
  return bytes_of(header) + bytes_of(section) + std::string(20, 'c');
}

TEST(LooseImage, PtxKeepsItsTextAndSaysItsArchitecture) {
  const auto images = images_in(loose_fatbin(static_cast<const void*>(kText.c_str())));
  ASSERT_EQ(images.size(), 1u);
  EXPECT_EQ(images.front().kind, ImageKind::kPtx);
  EXPECT_EQ(images.front().bytes, kText);
  EXPECT_EQ(images.front().arch, 90u);
  EXPECT_EQ(images.front().scope, ArchScope::kExact);
}

TEST(LooseImage, TextWithoutTargetIsRefused) {
  const auto fatbin = loose_fatbin(static_cast<const void*>("P"));
  ASSERT_FALSE(fatbin);
  EXPECT_THAT(fatbin.error().text, HasSubstr(".target"));
}

TEST(LooseImage, CubinOfEitherAbiSaysItsArchitecture) {
  const std::string newer = small_cubin(8, 0x6005a04), older = small_cubin(7, 0x50550);
  const auto of_newer = images_in(loose_fatbin(static_cast<const void*>(newer.data())));
  const auto of_older = images_in(loose_fatbin(static_cast<const void*>(older.data())));
  ASSERT_EQ(of_newer.size(), 1u);
  ASSERT_EQ(of_older.size(), 1u);
  EXPECT_EQ(of_newer.front().kind, ImageKind::kCubin);
  EXPECT_EQ(of_newer.front().arch, 90u);
  EXPECT_EQ(of_older.front().arch, 80u);
  EXPECT_EQ(of_newer.front().bytes.substr(0, newer.size()), newer);
}

TEST(LooseImage, FatBinaryAndItsWrapperAreCopiedWhole) {
  const std::string fatbin = FatbinBuilder().add(kFatbinPtx, 80, kText).build();
  const FatbinWrapper wrapper{kWrapperMagic, 1, fatbin.data(), nullptr};
  for (const void* image : {static_cast<const void*>(fatbin.data()), static_cast<const void*>(&wrapper)}) {
    const auto loose = loose_fatbin(image);
    ASSERT_TRUE(loose);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(loose->data()), loose->size()), fatbin);
  }
}

TEST(LooseImage, BundleHasEveryUnit) {
  auto units = *fatbin_of_ptx(kText);
  units.insert(units.end(), units.begin(), units.end());
  const auto linked = bundle(units);
  const auto images = images_in(loose_fatbin(static_cast<const void*>(linked.data())));
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(images[0].unit, 0u);
  EXPECT_EQ(images[1].unit, 1u);
}

TEST(LooseImage, FileThatEndsEarlyIsRefused) {
  const auto linked = bundle(*fatbin_of_ptx(kText));
  const std::string bundled(reinterpret_cast<const char*>(linked.data()), linked.size());
  const std::string whole = FatbinBuilder().add(kFatbinPtx, 80, kText).build(), elf = small_cubin(8, 0x5a00);
  EXPECT_TRUE(loose_fatbin(std::string_view(whole)));
  EXPECT_TRUE(loose_fatbin(std::string_view(elf)));
  EXPECT_TRUE(loose_fatbin(std::string_view(bundled)));
  for (const std::string& file : {whole, elf, bundled}) {
    for (size_t size = 0; size < file.size(); ++size)
      EXPECT_FALSE(loose_fatbin(std::string_view(file).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace heddle::image
