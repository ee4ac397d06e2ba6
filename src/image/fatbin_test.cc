#include "image/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/fatbin_builder.h"
#include "image/mangle.h"

namespace heddle::image {
namespace {

using testing::HasSubstr;

const std::string kPtx = ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

std::string padded(std::string text) {
  return text + std::string(3, '\0');
}

class EveryCompression : public testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(ReadFatbin, EveryCompression,
                         testing::Values(Compression::kNone, Compression::kLz4, Compression::kZstd));

TEST_P(EveryCompression, GivesBackThePtxWithoutItsPadding) {
  const std::string fatbin = FatbinBuilder().add(kFatbinPtx, 80, padded(kPtx), GetParam()).build();
  const auto images = read_fatbin(as_fatbin(fatbin));
  ASSERT_TRUE(images) << images.error().text;
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ(images->front().kind, ImageKind::kPtx);
  EXPECT_EQ(images->front().arch, 80u);
  EXPECT_EQ(images->front().bytes, kPtx);
}

TEST_P(EveryCompression, SurvivesTruncationAndDamage) {
  const std::string fatbin = FatbinBuilder()
                                 .add(kFatbinCubin, 80, std::string(300, 'x'), GetParam())
                                 .add(kFatbinPtx, 80, padded(kPtx), GetParam())
                                 .build();
  // A whole fat binary reads; nothing shorter does, for the header says how long it is.
  ASSERT_TRUE(read_fatbin(as_fatbin(fatbin)));
  read_prefixes(fatbin, [](std::string_view cut) { EXPECT_FALSE(read_fatbin(std::as_bytes(std::span(cut)))); });

  const ReadLimits limits{Bytes{kMiB}, Bytes{kMiB}};
  size_t largest = 0;
  read_damaged(fatbin, 3000, [&](std::string_view damaged) {
    const auto images = read_fatbin(std::as_bytes(std::span(damaged)), limits);
    for (const Image& image : images ? *images : std::vector<Image>()) largest = std::max(largest, image.bytes.size());
  });
  EXPECT_LE(largest, kMiB);
}

TEST_P(EveryCompression, RefusesMoreThanTheLimits) {
  const std::string image(100'000, 'x');
  const std::string fatbin =
      FatbinBuilder().add(kFatbinPtx, 75, image, GetParam()).add(kFatbinPtx, 80, image, GetParam()).build();
  EXPECT_EQ(read_fatbin(as_fatbin(fatbin), {Bytes{99'999}, Bytes{kGiB}}).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(read_fatbin(as_fatbin(fatbin), {Bytes{kGiB}, Bytes{199'999}}).error().code, ErrorCode::kLimitExceeded);
  EXPECT_TRUE(read_fatbin(as_fatbin(fatbin), {Bytes{100'000}, Bytes{200'000}}));
}

TEST(ReadFatbin, KeepsOrderArchitecturesAndScopes) {
  const std::string fatbin = FatbinBuilder()
                                 .add(kFatbinCubin, 90, "cubin", Compression::kNone, 0x11 | kFatbinExactArch)
                                 .add(8, 80, "code for the link-time optimizer")
                                 .add(kFatbinPtx, 100, kPtx, Compression::kZstd, 0x11 | kFatbinFamilyArch, "options.")
                                 .build();
  const auto images = read_fatbin(as_fatbin(fatbin));
  ASSERT_TRUE(images) << images.error().text;
  ASSERT_EQ(images->size(), 2u);
  EXPECT_EQ(arch_name((*images)[0]), "sm_90a");
  EXPECT_EQ(arch_name((*images)[1]), "compute_100f");
  EXPECT_EQ((*images)[1].bytes, kPtx);
}

TEST(ReadFatbin, AnEmptyOneHasNoImages) {
  const auto images = read_fatbin(as_fatbin(FatbinBuilder().build()));
  ASSERT_TRUE(images) << images.error().text;
  EXPECT_TRUE(images->empty());
}

TEST(ReadFatbin, SomethingElseIsNamed) {
  const std::string elf =
      "\x7f"
      "ELF, but sixteen bytes long";
  EXPECT_THAT(read_fatbin(as_fatbin(elf)).error().text, HasSubstr("0x464c457f"));
  EXPECT_EQ(read_fatbin({}).error().code, ErrorCode::kCorrupt);
}

TEST(ReadFatbin, SizesThatWrapAround) {
  FatbinEntry entry{};
  entry.kind = kFatbinPtx;
  entry.header_size = sizeof(entry);
  entry.payload_size = ~uint64_t{0} - 8;
  EXPECT_EQ(read_fatbin(as_fatbin(FatbinBuilder().add_raw(entry, kPtx).build())).error().code, ErrorCode::kCorrupt);
  entry.payload_size = 0;
  entry.header_size = 0;  // would be read for ever
  EXPECT_EQ(read_fatbin(as_fatbin(FatbinBuilder().add_raw(entry, kPtx).build())).error().code, ErrorCode::kCorrupt);
}

TEST(ReadFatbin, UnknownCompressionIsNotPassedOffAsText) {
  FatbinEntry entry{};
  entry.kind = kFatbinPtx;
  entry.header_size = sizeof(entry);
  entry.payload_size = entry.compressed_size = 8;
  entry.raw_size = 100;
  entry.flags = 0x40000;
  const auto images = read_fatbin(as_fatbin(FatbinBuilder().add_raw(entry, "12345678").build()));
  ASSERT_FALSE(images);
  EXPECT_EQ(images.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(images.error().text, HasSubstr("0x40000"));
}

TEST(ReadFatbin, AnnouncedSizeMustBeTheRealOne) {
  for (Compression compression : {Compression::kLz4, Compression::kZstd}) {
    for (int wrong : {-1, 1}) {
      std::string fatbin = FatbinBuilder().add(kFatbinPtx, 80, kPtx, compression).build();
      const size_t at = sizeof(FatbinHeader) + offsetof(FatbinEntry, raw_size);
      const uint64_t size = kPtx.size() + static_cast<uint64_t>(wrong);
      std::memcpy(fatbin.data() + at, &size, sizeof(size));
      EXPECT_EQ(read_fatbin(as_fatbin(fatbin)).error().code, ErrorCode::kCorrupt);
    }
  }
}

TEST(FatbinsOfWrapper, VersionOneHasOne) {
  const std::string fatbin = FatbinBuilder().add(kFatbinPtx, 80, kPtx).build();
  const FatbinWrapper wrapper{kWrapperMagic, 1, fatbin.data(), nullptr};
  const auto found = fatbins_of_wrapper(&wrapper);
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(found->front().data()), found->front().size()), fatbin);
}

TEST(FatbinsOfWrapper, VersionTwoHasTheLinkedOneAndEveryUnit) {
  const std::string linked = FatbinBuilder().add(kFatbinCubin, 80, "linked").build();
  const std::string a = FatbinBuilder().add(kFatbinPtx, 80, kPtx).build();
  const std::string b = FatbinBuilder().add(kFatbinPtx, 80, kPtx, Compression::kZstd).build();
  const void* units[] = {a.data(), b.data(), nullptr};
  const FatbinWrapper wrapper{kWrapperMagic, 2, linked.data(), units};
  const auto found = fatbins_of_wrapper(&wrapper);
  ASSERT_TRUE(found) << found.error().text;
  const auto images = read_fatbins(*found);
  ASSERT_TRUE(images) << images.error().text;
  ASSERT_EQ(images->size(), 3u);
  EXPECT_EQ((*images)[0].bytes.substr(0, 6), "linked");
  EXPECT_EQ((*images)[1].unit, 1u);
  EXPECT_EQ((*images)[2].unit, 2u);
}

TEST(FatbinsOfWrapper, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(fatbins_of_wrapper(nullptr).error().code, ErrorCode::kInvalidArgument);
  const std::string fatbin = FatbinBuilder().build();
  const FatbinWrapper version_three{kWrapperMagic, 3, fatbin.data(), nullptr};
  EXPECT_THAT(fatbins_of_wrapper(&version_three).error().text, HasSubstr("version 3"));
  const FatbinWrapper wrong_magic{1, 1, fatbin.data(), nullptr};
  EXPECT_FALSE(fatbins_of_wrapper(&wrong_magic));
  const std::string nonsense(sizeof(FatbinHeader), 'x');
  const FatbinWrapper to_nonsense{kWrapperMagic, 1, nonsense.data(), nullptr};
  EXPECT_EQ(fatbins_of_wrapper(&to_nonsense).error().code, ErrorCode::kCorrupt);
}

TEST(SplitFatbins, GivesEachOfSeveral) {
  const std::string first = FatbinBuilder().add(kFatbinPtx, 80, kPtx).build();
  const std::string second = FatbinBuilder().add(kFatbinPtx, 90, kPtx).build();
  const std::string both = first + second;
  const auto fatbins = split_fatbins(as_fatbin(both));
  ASSERT_TRUE(fatbins) << fatbins.error().text;
  ASSERT_EQ(fatbins->size(), 2u);
  const auto images = read_fatbins(*fatbins);
  ASSERT_TRUE(images) << images.error().text;
  EXPECT_EQ(images->at(1).arch, 90u);
  EXPECT_EQ(images->at(1).unit, 1u);
}

TEST(SplitFatbins, RefusesWhatStandsBetweenAndBehind) {
  const std::string fatbin = FatbinBuilder().add(kFatbinPtx, 80, kPtx).build();
  for (const std::string& bytes : {std::string(), fatbin + "more", fatbin.substr(0, fatbin.size() - 1), "x" + fatbin})
    EXPECT_EQ(split_fatbins(as_fatbin(bytes)).error().code, ErrorCode::kCorrupt) << bytes.size();
}

}  // namespace
}  // namespace heddle::image
