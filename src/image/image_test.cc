#include "image/image.h"

#include <gtest/gtest.h>

namespace heddle::image {
namespace {

Image ptx(uint32_t arch, ArchScope scope = ArchScope::kPortable, uint32_t unit = 0) {
  return {ImageKind::kPtx, arch, scope, false, unit, {}};
}
Image cubin(uint32_t arch, bool relocatable = false, uint32_t unit = 0) {
  return {ImageKind::kCubin, arch, ArchScope::kPortable, relocatable, unit, {}};
}

TEST(ChoosePtx, TakesTheHighestArchitectureThatTheDeviceExecutes) {
  const std::vector<Image> images{ptx(75), cubin(90), ptx(80), ptx(120)};
  EXPECT_EQ(*choose_ptx(images, 90), &images[2]);
  EXPECT_EQ(*choose_ptx(images, 120), &images[3]);
  EXPECT_EQ(*choose_ptx(images, 75), &images[0]);
}

TEST(ChoosePtx, ArchitectureSpecificCodeRunsOnThatArchitectureOnly) {
  const std::vector<Image> images{ptx(80), ptx(90, ArchScope::kExact)};
  EXPECT_EQ(*choose_ptx(images, 90), &images[1]);
  EXPECT_EQ(*choose_ptx(images, 100), &images[0]);
}

TEST(ChoosePtx, FamilySpecificCodeRunsWithinItsMajorVersion) {
  const std::vector<Image> images{ptx(80), ptx(100, ArchScope::kFamily)};
  EXPECT_EQ(*choose_ptx(images, 103), &images[1]);
  EXPECT_EQ(*choose_ptx(images, 120), &images[0]);
}

TEST(ChoosePtx, MachineCodeOnlySaysHowToRebuild) {
  const std::vector<Image> images{cubin(80), cubin(90)};
  const auto chosen = choose_ptx(images, 90);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(chosen.error().text,
            "the program carries no PTX (only sm_80, sm_90 machine code): rebuild with -gencode "
            "arch=compute_80,code=compute_80");
}

TEST(ChoosePtx, PtxForNewerDevicesOnlyNamesIt) {
  const std::vector<Image> images{ptx(120), ptx(100, ArchScope::kExact)};
  const auto chosen = choose_ptx(images, 90);
  ASSERT_FALSE(chosen);
  EXPECT_NE(chosen.error().text.find("compute_100a, compute_120"), std::string::npos) << chosen.error().text;
  EXPECT_NE(chosen.error().text.find("code=compute_90"), std::string::npos) << chosen.error().text;
}

TEST(ChoosePtx, NoImagesAtAll) {
  EXPECT_EQ(choose_ptx({}, 90).error().code, ErrorCode::kNotFound);
}

TEST(ChoosePtxUnits, PassesOverTheLinkersOutputAndTakesOneTextAUnit) {
  const std::vector<Image> images{cubin(80), cubin(80, true, 1), ptx(75, ArchScope::kPortable, 1),
                                  ptx(90, ArchScope::kPortable, 1), ptx(80, ArchScope::kPortable, 2)};
  const auto chosen = choose_ptx_units(images, 90);
  ASSERT_TRUE(chosen) << chosen.error().text;
  EXPECT_EQ(*chosen, (std::vector<const Image*>{&images[3], &images[4]}));
  EXPECT_EQ(choose_ptx(images, 90).error().code, ErrorCode::kNotSupported);
}

TEST(ChoosePtxUnits, AUnitWithoutPtxSpoilsTheWhole) {
  const std::vector<Image> images{cubin(80), ptx(80, ArchScope::kPortable, 1), cubin(80, true, 2)};
  EXPECT_EQ(choose_ptx_units(images, 90).error().code, ErrorCode::kNotFound);
}

TEST(ChoosePtxUnits, WhatTheyCallOfTheDeviceRuntimeComesLast) {
  Image setting = ptx(80, ArchScope::kPortable, 1);
  setting.bytes = "call.uni cudaGraphSetConditional, (param0, param1);";
  const std::vector<Image> images{setting, ptx(80, ArchScope::kPortable, 2)};
  const auto chosen = choose_ptx_units(images, 90);
  ASSERT_TRUE(chosen) << chosen.error().text;
  EXPECT_EQ(*chosen, (std::vector<const Image*>{&images[0], &images[1], &device_runtime_unit()}));
}

TEST(ChoosePtxUnits, KernelsThatLaunchKernelsAreRefusedByName) {
  Image launching = ptx(80, ArchScope::kPortable, 1);
  launching.bytes = "call.uni (retval0), __cudaCDP2LaunchDeviceV2, (param0, param1);";
  const std::vector<Image> images{cubin(80), launching, cubin(80, true, 2)};
  const auto chosen = choose_ptx_units(images, 90);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::kNotSupported);
  EXPECT_NE(chosen.error().text.find("dynamic parallelism"), std::string::npos) << chosen.error().text;
}

}  // namespace
}  // namespace heddle::image
