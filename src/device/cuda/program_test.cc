// Which code of a program the driver is given, and what is said where it takes none. The driver is the test's own.

#include "device/cuda/program.h"

#include <gmock/gmock.h>

#include <cstring>

#include "image/fatbin_builder.h"
#include "image/fatbin_format.h"

namespace heddle::cuda {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What the driver was asked, and how it answers. Functions of the driver know no object: one for all tests.
struct Asked {
  std::vector<std::string> loaded, linked;  // by the first line of what was given
  CUresult machine_code = CUDA_SUCCESS, link = CUDA_SUCCESS;
} asked;

std::string first_line(const void* text) {
  const std::string_view all(static_cast<const char*>(text));
  return std::string(all.substr(0, all.find('\n')));
}

// NOLINTBEGIN(readability-named-parameter): the driver's
Driver scripted() {
  Driver driver;
  driver.cuModuleLoadData = [](CUmodule*, const void* data) {
    asked.loaded.push_back(first_line(data));
    return asked.loaded.back().starts_with("//") || asked.loaded.back() == "linked" ? CUDA_SUCCESS : asked.machine_code;
  };
  driver.cuModuleGetFunctionCount = [](unsigned*, CUmodule) { return CUDA_ERROR_NOT_FOUND; };
  driver.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  driver.cuLinkCreate = [](unsigned, CUjit_option*, void** values, CUlinkState*) {
    if (asked.link != CUDA_SUCCESS) std::strcpy(static_cast<char*>(values[0]), "Undefined reference to 'there'");
    return CUDA_SUCCESS;
  };
  driver.cuLinkAddData = [](CUlinkState, CUjitInputType, void* data, size_t bytes, const char*, unsigned, CUjit_option*,
                            void**) {
    EXPECT_EQ(std::strlen(static_cast<const char*>(data)) + 1, bytes);
    asked.linked.push_back(first_line(data));
    return CUDA_SUCCESS;
  };
  driver.cuLinkComplete = [](CUlinkState, void** cubin, size_t* bytes) {
    static char made[] = "linked";
    *cubin = made;
    *bytes = sizeof made - 1;
    return asked.link;
  };
  driver.cuLinkDestroy = [](CUlinkState) { return CUDA_SUCCESS; };
  driver.cuGetErrorName = [](CUresult, const char** text) {
    *text = "CUDA_ERROR_SCRIPTED";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test has it";
    return CUDA_SUCCESS;
  };
  return driver;
}
// NOLINTEND(readability-named-parameter)

struct ProgramTest : testing::Test {
  void SetUp() override { asked = {}; }
  // Empty: it was loaded.
  std::string load(const std::string& fatbins) {
    const auto program = Program::load(driver, std::as_bytes(std::span(fatbins)), 90);
    return program ? "" : program.error().text;
  }
  static std::string unit(const std::string& ptx) {
    return image::FatbinBuilder().add(image::kFatbinPtx, 80, ptx).build();
  }
  const Driver driver = scripted();
};

TEST_F(ProgramTest, MachineCodeForTheDeviceNeedsNoPtx) {
  EXPECT_EQ(load(image::FatbinBuilder().add(image::kFatbinCubin, 90, "sm_90").build()), "");
  EXPECT_THAT(asked.loaded, ElementsAre("sm_90"));
}

TEST_F(ProgramTest, MachineCodeForAnOlderDeviceOfTheMajorVersionDoes) {
  const std::string fatbin = image::FatbinBuilder()
                                 .add(image::kFatbinCubin, 80, "sm_80")
                                 .add(image::kFatbinCubin, 86, "sm_86")
                                 .add(image::kFatbinCubin, 90, "sm_90")
                                 .build();
  const auto program = Program::load(driver, std::as_bytes(std::span(fatbin)), 89);
  ASSERT_TRUE(program) << program.error().text;
  EXPECT_THAT(asked.loaded, ElementsAre("sm_86"));
}

TEST_F(ProgramTest, PtxServesWhereTheDriverDoesNotTakeTheMachineCode) {
  asked.machine_code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  EXPECT_EQ(load(image::FatbinBuilder()
                     .add(image::kFatbinCubin, 90, "sm_90")
                     .add(image::kFatbinPtx, 80, "// compute_80\n")
                     .build()),
            "");
  EXPECT_THAT(asked.loaded, ElementsAre("sm_90", "// compute_80"));
}

TEST_F(ProgramTest, WhatTheDriverHasAgainstTheMachineCodeIsSaid) {
  asked.machine_code = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_THAT(load(image::FatbinBuilder().add(image::kFatbinCubin, 90, "sm_90").build()),
              AllOf(HasSubstr("sm_90 machine code"), HasSubstr("CUDA_ERROR_SCRIPTED (2)"), HasSubstr("no PTX")));
  EXPECT_THAT(load(image::FatbinBuilder().add(image::kFatbinCubin, 80, "sm_80").build()),
              AllOf(HasSubstr("no PTX (only sm_80 machine code)"), Not(HasSubstr("CUDA_ERROR"))));
}

TEST_F(ProgramTest, SeparateUnitsAreLinked) {
  EXPECT_EQ(load(unit("// one\n") + unit("// two\n")), "");
  EXPECT_THAT(asked.linked, ElementsAre("// one", "// two"));
  EXPECT_THAT(asked.loaded, ElementsAre("linked"));
}

TEST_F(ProgramTest, TheLinkedProgramIsTakenWhereItIsForTheDevice) {
  EXPECT_EQ(load(image::FatbinBuilder().add(image::kFatbinCubin, 90, "sm_90").build() + unit("// one\n")), "");
  EXPECT_THAT(asked.loaded, ElementsAre("sm_90"));
  EXPECT_THAT(asked.linked, IsEmpty());
}

TEST_F(ProgramTest, WhatDoesNotLinkIsSaidInTheLinkersWords) {
  asked.link = CUDA_ERROR_INVALID_PTX;
  EXPECT_THAT(load(unit("// one\n") + unit("// two\n")),
              AllOf(HasSubstr("2 separately compiled units"), HasSubstr("Undefined reference to 'there'")));
}

TEST_F(ProgramTest, ThatTheDeviceRuntimeIsMissingIsSaid) {
  asked.link = CUDA_ERROR_INVALID_PTX;
  EXPECT_THAT(load(unit("// one\ncall __cudaCDP2LaunchDeviceV2;") + unit("// two\n")),
              AllOf(HasSubstr("dynamic parallelism"), HasSubstr("rebuild with machine code")));
}

}  // namespace
}  // namespace heddle::cuda
