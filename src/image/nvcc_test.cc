// What nvcc really writes, read back: the outputs of testdata/*.cu that the build made. ptxas's own report of the
// resources is the reference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "image/describe.h"
#include "image/fatbin.h"
#include "image/mangle.h"

namespace heddle::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string read_output(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_IMAGE_TEST_OUTPUTS) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Image> images_of(const std::string& name) {
  const std::string fatbin = read_output(name);
  auto images = read_fatbin(std::as_bytes(std::span(fatbin)));
  EXPECT_TRUE(images) << images.error().text;
  return images ? std::move(*images) : std::vector<Image>();
}

ModuleInfo value_of(Result<ModuleInfo> module) {
  EXPECT_TRUE(module) << module.error().text;
  return module ? std::move(*module) : ModuleInfo();
}

struct Expected {
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes;
  uint32_t static_shared;
  uint32_t max_threads;
};

// From kernels.cu by the rules of C++; the shared memory as an H200 reports it.
const std::map<std::string, Expected> kKernels = {
    {"nothing", {{}, 0, 0, 1024}},
    {"_Z6vecaddPKfS0_Pfi", {{{0, 8}, {8, 8}, {16, 8}, {24, 4}}, 28, 0, 1024}},
    {"_Z8by_value5Small6Arraysc7AlignedsPd",
     {{{0, 12}, {16, 48}, {64, 1}, {80, 32}, {112, 2}, {120, 8}}, 128, 0, 1024}},
    {"_Z4huge4HugeiPf", {{{0, 20000}, {20000, 4}, {20008, 8}}, 20016, 0, 1024}},
    {"_Z8reversedIfLi128EEvPKT_PS0_", {{{0, 8}, {8, 8}}, 16, 2048, 128}},
    {"_Z8reversedIdLi256EEvPKT_PS0_", {{{0, 8}, {8, 8}}, 16, 8192, 256}},
    {"_Z7dynamicPf", {{{0, 8}}, 8, 0, 1024}},
    {"_Z10five_bytesPf", {{{0, 8}}, 8, 16, 1024}},
    {"_Z13through_callsPf", {{{0, 8}}, 8, 672, 1024}},
    {"_Z16through_one_callPf", {{{0, 8}}, 8, 400, 1024}},
    {"_Z5stackPii", {{{0, 8}, {8, 4}}, 12, 0, 1024}},
};

void expect_kernels(const ModuleInfo& module) {
  EXPECT_EQ(module.kernels.size(), kKernels.size());
  for (const auto& [name, expected] : kKernels) {
    const KernelInfo* kernel = module.kernel(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(kernel->parameters, expected.parameters) << name;
    EXPECT_EQ(kernel->parameter_bytes, expected.parameter_bytes) << name;
    EXPECT_EQ(kernel->static_shared, expected.static_shared) << name;
    EXPECT_EQ(kernel->max_threads, expected.max_threads) << name;
    EXPECT_EQ(kernel->constant_bytes, 88u) << name;  // 64, 5, and 16 at 72
  }
}

void expect_variables(const ModuleInfo& module) {
  const std::map<std::string, VariableInfo> variables = {
      {"coefficients", {"", 64, true, false}},  {"odd", {"", 5, true, false}},
      {"counter", {"", 4, false, false}},       {"table", {"", 800, false, false}},
      {"message", {"", 8, false, false, true}}, {"managed_value", {"", 4, false, true}},
  };
  for (const auto& [name, expected] : variables) {
    const VariableInfo* variable = module.variable(name);
    ASSERT_TRUE(variable) << name;
    EXPECT_EQ(variable->size, expected.size) << name;
    EXPECT_EQ(variable->constant, expected.constant) << name;
    EXPECT_EQ(variable->managed, expected.managed) << name;
    EXPECT_TRUE(variable->holds_addresses || !expected.holds_addresses) << name;
  }
}

class EveryArchitecture : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Nvcc, EveryArchitecture, testing::Values(75, 90, 100, 120));

TEST_P(EveryArchitecture, PtxAndMachineCodeSayTheSame) {
  const std::vector<Image> images = images_of("all.fatbin");
  int seen = 0;
  for (const Image& image : images) {
    if (image.arch != GetParam()) continue;
    SCOPED_TRACE(arch_name(image));
    const bool ptx = image.kind == ImageKind::kPtx;
    const ModuleInfo module = value_of(ptx ? describe_ptx(image.bytes) : describe_cubin(image.bytes));
    expect_kernels(module);
    expect_variables(module);
    EXPECT_TRUE(module.prints);
    EXPECT_FALSE(module.allocates);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

// "ptxas info    : Used 24 registers, used 1 barriers, 8 bytes cumulative stack size, 32 bytes smem", for each kernel
// after a line that names it.
TEST_P(EveryArchitecture, ResourcesAreThoseThatPtxasReports) {
  const std::string stem = "sm_" + std::to_string(GetParam());
  const ModuleInfo module = value_of(describe_cubin(read_output(stem + ".cubin")));
  std::istringstream report(read_output(stem + ".report"));
  std::string line, name;
  size_t compared = 0;
  while (std::getline(report, line)) {
    if (const size_t entry = line.find("entry function '"); entry != std::string::npos) {
      name = line.substr(entry + 16, line.find('\'', entry + 16) - entry - 16);
    }
    const size_t used = line.find("Used ");
    if (used == std::string::npos) continue;
    const KernelInfo* kernel = module.kernel(name);
    ASSERT_TRUE(kernel) << name;
    const auto number_before = [&](const char* unit) {
      const size_t end = line.find(unit);
      return end == std::string::npos ? 0ul : std::stoul(line.substr(line.rfind(' ', end - 1)));
    };
    EXPECT_EQ(kernel->registers, std::stoul(line.substr(used + 5))) << name;
    EXPECT_EQ(kernel->local_bytes, number_before(" bytes cumulative stack size")) << name;
    EXPECT_EQ(kernel->static_shared, (number_before(" bytes smem") + 15) / 16 * 16) << name;
    ++compared;
  }
  EXPECT_EQ(compared, kKernels.size());
}

class EveryCompressMode : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Nvcc, EveryCompressMode, testing::Values("none", "speed", "balance", "size"));

TEST_P(EveryCompressMode, YieldsTheSameImages) {
  const std::vector<Image> plain = images_of("none.fatbin"), images = images_of(std::string(GetParam()) + ".fatbin");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_EQ(arch_name(images[0]), "sm_80");
  EXPECT_EQ(arch_name(images[1]), "compute_80");
  for (size_t i = 0; i < images.size(); ++i) EXPECT_EQ(images[i].bytes.size(), plain.at(i).bytes.size());
  EXPECT_THAT(images[1].bytes, HasSubstr(".visible .entry nothing()"));
  EXPECT_EQ(images[1].bytes.back(), '\n');
}

TEST(Nvcc, DescriptionJoinsPtxWithRegistersFromTheNearestMachineCode) {
  const std::vector<Image> images = images_of("all.fatbin");
  for (uint32_t arch : {75u, 90u, 120u, kNewestArch}) {
    const ModuleInfo module = value_of(describe(images, arch));
    expect_kernels(module);
    const uint32_t machine = std::min(arch, 120u);
    const ModuleInfo assembled = value_of(describe_cubin(read_output("sm_" + std::to_string(machine) + ".cubin")));
    for (const KernelInfo& kernel : module.kernels) {
      ASSERT_TRUE(assembled.kernel(kernel.name)) << kernel.name;
      EXPECT_EQ(kernel.registers, assembled.kernel(kernel.name)->registers) << kernel.name;
      EXPECT_GT(kernel.registers, 0u);
    }
  }
}

TEST(Nvcc, MachineCodeAloneIsDescribedButNotChosen) {
  const std::vector<Image> images = images_of("machine_only.fatbin");
  expect_kernels(value_of(describe(images)));
  const auto chosen = choose_ptx(images, 90);
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().text, HasSubstr("only sm_80 machine code"));
}

TEST(Nvcc, PtxAloneHasNoRegisters) {
  const std::vector<Image> images = images_of("ptx_only.fatbin");
  ASSERT_EQ(images.size(), 1u);
  const ModuleInfo module = value_of(describe(images));
  expect_kernels(module);
  EXPECT_EQ(module.kernel("nothing")->registers, 0u);
}

TEST(Nvcc, DebugInformationIsPassedOver) {
  const std::vector<Image> images = images_of("debug.fatbin");
  const ModuleInfo module = value_of(describe(images));
  EXPECT_EQ(module.kernels.size(), kKernels.size());
  for (const auto& [name, expected] : kKernels) {
    ASSERT_TRUE(module.kernel(name)) << name;
    EXPECT_EQ(module.kernel(name)->parameters, expected.parameters) << name;
  }
}

TEST(Nvcc, ArchitectureSpecificImagesAreMarked) {
  const std::vector<Image> images = images_of("specific.fatbin");
  std::vector<std::string> names;
  for (const Image& image : images) names.push_back(arch_name(image));
  EXPECT_THAT(names, ElementsAre("sm_90a", "compute_90a", "sm_100f", "compute_100f"));
  EXPECT_TRUE(choose_ptx(images, 90));
  EXPECT_TRUE(choose_ptx(images, 103));
  EXPECT_FALSE(choose_ptx(images, 120));
}

TEST(Nvcc, DamagedMachineCodeNeverCrashes) {
  const std::string cubin = read_output("sm_90.cubin");
  ASSERT_TRUE(describe_cubin(cubin));
  size_t kernels = 0;
  const auto count = [&](std::string_view bytes) {
    if (const auto module = describe_cubin(bytes)) kernels = std::max(kernels, module->kernels.size());
  };
  read_prefixes(cubin, count);
  read_damaged(cubin, 5000, count);
  EXPECT_EQ(kernels, kKernels.size());
}

// nvlink registers units of libraries that the program does not use, and these may lack PTX.
TEST(SeparatelyCompiled, AUnitWithoutPtxMattersWhereAnotherRefersToIt) {
  const auto program_of = [](const char* with_ptx) {
    std::vector<Image> images = images_of(with_ptx);
    for (Image& image : images_of("unit_b_machine.fatbin")) {
      image.unit = 1;
      images.push_back(std::move(image));
    }
    return images;
  };
  const std::vector<Image> alone = program_of("ptx_only.fatbin");
  const auto chosen = choose_ptx_units(alone, 90);
  ASSERT_TRUE(chosen) << chosen.error().text;
  EXPECT_THAT(*chosen, ElementsAre(&alone[0]));
  EXPECT_TRUE(value_of(describe(alone, 90)).kernel("nothing"));

  const std::vector<Image> in_need = program_of("unit_a_ptx.fatbin");
  EXPECT_EQ(choose_ptx_units(in_need, 90).error().code, ErrorCode::kNotFound);
}

TEST(SeparatelyCompiled, WhoSetsConditionsIsSeenInBothKindsOfCode) {
  EXPECT_TRUE(calls_device_runtime(images_of("conditions_ptx.fatbin")));
  EXPECT_TRUE(calls_device_runtime(images_of("conditions_machine.fatbin")));
  EXPECT_FALSE(calls_device_runtime(images_of("unit_a_ptx.fatbin")));
  EXPECT_FALSE(calls_device_runtime(images_of("unit_b_machine.fatbin")));
  const auto images = images_of("conditions_ptx.fatbin");
  const auto chosen = choose_ptx_units(images, 90);
  ASSERT_TRUE(chosen) << chosen.error().text;
  EXPECT_THAT(*chosen, ElementsAre(&images[0], &device_runtime_unit()));
  EXPECT_TRUE(value_of(describe(images, 90)).kernel("decide"));
}

}  // namespace
}  // namespace heddle::image
