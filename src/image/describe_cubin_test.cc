#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

#include "image/describe.h"
#include "image/elf_view.h"
#include "image/mangle.h"

namespace heddle::image {
namespace {

using testing::ElementsAre;

// testdata/whole.cu as nvcc 13.0 assembled it.
std::string corpus(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_IMAGE_CORPUS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

class EveryCubin : public testing::TestWithParam<const char*> {};
// sm_90 reserves shared memory and keeps registers in an attribute only.
INSTANTIATE_TEST_SUITE_P(DescribeCubin, EveryCubin, testing::Values("sm_80.cubin", "sm_90.cubin"));

TEST_P(EveryCubin, KernelsAndVariables) {
  const auto module = describe_cubin(corpus(GetParam()));
  ASSERT_TRUE(module) << module.error().text;
  ASSERT_EQ(module->kernels.size(), 2u);
  const KernelInfo* tiled = module->kernel("_Z5tiledcPKfPf");
  ASSERT_TRUE(tiled);
  EXPECT_THAT(tiled->parameters, ElementsAre(Parameter{0, 1}, Parameter{8, 8}, Parameter{16, 8}));
  EXPECT_EQ(tiled->parameter_bytes, 24u);
  EXPECT_EQ(tiled->static_shared, 48u);
  EXPECT_EQ(tiled->max_threads, 64u);
  EXPECT_EQ(tiled->constant_bytes, 12u);
  EXPECT_GE(tiled->registers, 8u);
  EXPECT_LE(tiled->registers, 32u);
  ASSERT_TRUE(module->kernel("_Z5alonePii"));
  EXPECT_EQ(module->kernel("_Z5alonePii")->static_shared, 0u);
  ASSERT_TRUE(module->variable("calls") && module->variable("factors"));
  EXPECT_EQ(module->variable("calls")->size, 4u);
  EXPECT_TRUE(module->variable("factors")->constant);
}

TEST_P(EveryCubin, SurvivesTruncationAndDamage) {
  const std::string cubin = corpus(GetParam());
  EXPECT_FALSE(describe_cubin(std::string_view(cubin).substr(0, cubin.size() / 2)));
  size_t kernels = 0;
  const auto count = [&](std::string_view bytes) {
    if (const auto module = describe_cubin(bytes)) kernels = std::max(kernels, module->kernels.size());
  };
  read_prefixes(cubin, count);
  read_damaged(cubin, 10'000, count);
  EXPECT_EQ(kernels, 2u);
}

// Changes one field of the section header of `name`.
void set_section_field(std::string& cubin, std::string_view name, size_t field, uint64_t value) {
  const auto elf = ElfView::open(cubin);
  ASSERT_TRUE(elf) << elf.error().text;
  const auto* section = elf->section(name);
  ASSERT_TRUE(section);
  const auto index = static_cast<size_t>(section - elf->sections().data());
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof(header));
  std::memcpy(cubin.data() + header.e_shoff + index * sizeof(Elf64_Shdr) + field, &value, sizeof(value));
}

TEST(DescribeCubin, ASectionPastTheEndOfTheFile) {
  std::string cubin = corpus("sm_80.cubin");
  set_section_field(cubin, ".nv.info", offsetof(Elf64_Shdr, sh_offset), ~uint64_t{0} - 4);
  EXPECT_EQ(describe_cubin(cubin).error().code, ErrorCode::kCorrupt);
}

TEST(DescribeCubin, AbsurdSharedMemory) {
  std::string cubin = corpus("sm_80.cubin");
  set_section_field(cubin, ".nv.shared._Z5tiledcPKfPf", offsetof(Elf64_Shdr, sh_size), uint64_t{1} << 40);
  EXPECT_EQ(describe_cubin(cubin).error().code, ErrorCode::kCorrupt);
}

TEST(DescribeCubin, AttributesThatEndInTheMiddle) {
  std::string cubin = corpus("sm_80.cubin");
  const auto elf = ElfView::open(cubin);
  ASSERT_TRUE(elf);
  const uint64_t size = elf->section(".nv.info._Z5alonePii")->size;
  set_section_field(cubin, ".nv.info._Z5alonePii", offsetof(Elf64_Shdr, sh_size), size - 2);
  const auto module = describe_cubin(cubin);
  ASSERT_FALSE(module);
  EXPECT_THAT(module.error().text, testing::HasSubstr(".nv.info._Z5alonePii"));
}

TEST(DescribeCubin, NoElfAndNoCubin) {
  EXPECT_EQ(describe_cubin("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(describe_cubin(std::string(100, 'x')).error().code, ErrorCode::kCorrupt);
  std::string host_program = corpus("sm_80.cubin");
  const Elf64_Half machine = EM_X86_64;
  std::memcpy(host_program.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
  EXPECT_EQ(describe_cubin(host_program).error().code, ErrorCode::kNotSupported);
}

TEST(Describe, NothingToDescribe) {
  EXPECT_EQ(describe({}).error().code, ErrorCode::kNotFound);
}

TEST(Describe, MachineCodeServesWhereThePtxIsBeyondUs) {
  std::vector<Image> images(2);
  images[0].arch = images[1].arch = 80;
  images[0].bytes = ".version 99.0\n.entry k(.param .q7 x) {}";
  images[1].kind = ImageKind::kCubin;
  images[1].bytes = corpus("sm_80.cubin");
  const auto module = describe(images);
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_TRUE(module->kernel("_Z5alonePii"));
}

TEST(Describe, TellsWhichArchitectureItIsFor) {
  std::vector<Image> images(2);
  images[0].arch = 75;
  images[1].arch = 80;
  images[0].bytes = images[1].bytes = corpus("compute_80.ptx");
  EXPECT_EQ(describe(images, 90)->arch, 80u);
  EXPECT_EQ(describe(images, 75)->arch, 75u);
  images[1].kind = ImageKind::kCubin;
  images[1].bytes = corpus("sm_80.cubin");
  EXPECT_EQ(describe(images, 90)->arch, 75u) << "machine code is not what a software device runs";
  images.erase(images.begin());
  EXPECT_EQ(describe(images, 90)->arch, 80u);
}

TEST(Describe, PtxAndMachineCodeOfOneKernelBecomeOneEntry) {
  std::vector<Image> images(2);
  images[0].arch = images[1].arch = 80;
  images[0].bytes = corpus("compute_80.ptx");
  images[1].kind = ImageKind::kCubin;
  images[1].bytes = corpus("sm_80.cubin");
  const auto module = describe(images);
  ASSERT_TRUE(module) << module.error().text;
  EXPECT_EQ(module->kernels.size(), 2u);
  EXPECT_EQ(module->variables.size(), 2u);
  EXPECT_GT(module->kernel("_Z5tiledcPKfPf")->registers, 0u);
}

}  // namespace
}  // namespace heddle::image
