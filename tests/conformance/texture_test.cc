// Texture and surface objects: that launches find them, and which ones. What a fetch gives is tested where it is
// computed.

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kHandle = 0x4854'01'000001'0000;
constexpr uint32_t kWidth = 32, kHeight = 4;

class TextureTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    memory_ = map(4096);
    out_ = map(4096);
    const Status made = context().set_texture(kHandle, floats());
    if (made) return;
    EXPECT_EQ(made.error().code, ErrorCode::kNotSupported) << made.error().text;
    EXPECT_NE(made.error().text.find("texture and surface objects"), std::string::npos) << made.error().text;
    GTEST_SKIP() << made.error().text;
  }

  // Element (x, y) is x + 100 y, once write_floats() was called.
  Texture floats() const {
    Texture texture;
    texture.shape = TextureShape::k2D;
    texture.address = memory_;
    texture.width = kWidth, texture.height = kHeight;
    texture.pitch = 4 * kWidth;
    return texture;
  }
  void write_floats() {
    std::vector<float> values;
    for (uint32_t i = 0; i < kWidth * kHeight; ++i)
      values.push_back(static_cast<float>(i % kWidth + 100 * (i / kWidth)));
    write(memory_, values);
  }
  device::Tag sample(float x, float y, uint64_t handle = kHandle) {
    return launch(0, "sample", {1}, {kWidth}, Parameters(handle, x, y, out_));
  }
  std::vector<float> sampled() { return read<float>(out_, kWidth); }

  uint64_t memory_ = 0, out_ = 0;
};
HEDDLE_CONFORMANCE_SUITE(TextureTest);

TEST_P(TextureTest, AKernelFindsItsTexture) {
  write_floats();
  sample(0, 2);
  finish();
  const auto result = sampled();
  for (uint32_t x = 0; x < kWidth; ++x) EXPECT_EQ(result[x], 200 + x);
}

TEST_P(TextureTest, AFilterAndModesBelongToTheObject) {
  write_floats();
  Texture texture = floats();
  texture.flags = Texture::kLinearFilter;
  texture.modes[0] = AddressMode::kBorder;
  ASSERT_TRUE(context().set_texture(kHandle + 1, texture));
  sample(1, 2, kHandle + 1);
  finish();
  const auto result = sampled();
  EXPECT_EQ(result[0], 150.5f);
  EXPECT_EQ(result[kWidth - 1], 181 / 2.0f);
}

TEST_P(TextureTest, ALaunchKeepsTheTextureThatItWasHandedOverWith) {
  write_floats();
  const device::Tag held = next_tag();
  ASSERT_TRUE(context().hold(0, held));
  const device::Tag first = sample(0, 1);
  Texture other = floats();
  other.address += other.pitch;
  ASSERT_TRUE(context().set_texture(kHandle, other));
  ASSERT_TRUE(context().remove_texture(kHandle));
  ASSERT_TRUE(context().release(held));
  EXPECT_EQ(wait_for(first).cuda_error, 0u);
  EXPECT_EQ(sampled()[3], 103);
}

TEST_P(TextureTest, BuffersAreReadByIndexAndZeroOutside) {
  write(memory_, std::vector<int>{7, 8, 9, 10});
  Texture texture;
  texture.flags = Texture::kBuffer;
  texture.kind = TexelKind::kSigned;
  texture.address = memory_;
  texture.width = 4;
  ASSERT_TRUE(context().set_texture(kHandle + 1, texture));
  launch(0, "fetch", {1}, {8}, Parameters(kHandle + 1, int32_t{-2}, out_));
  finish();
  EXPECT_EQ(read<int>(out_, 8), (std::vector<int>{0, 0, 7, 8, 9, 10, 0, 0}));
}

TEST_P(TextureTest, SurfacesAreWritten) {
  write_floats();
  Texture surface = floats();
  surface.flags = Texture::kSurface;
  ASSERT_TRUE(context().set_texture(kHandle + 1, surface));
  launch(0, "write_surface", {1}, {kWidth, kHeight}, Parameters(kHandle + 1, 0.5f));
  finish();
  const auto values = read<float>(memory_, kWidth * kHeight);
  EXPECT_EQ(values[0], 0.5f);
  EXPECT_EQ(values[kWidth * 3 + 5], 305.5f);
}

TEST_P(TextureTest, AnObjectThatWasRemovedIsAFault) {
  ASSERT_TRUE(context().remove_texture(kHandle));
  EXPECT_NE(wait_for(sample(0, 0)).cuda_error, 0u);
}

TEST_P(TextureTest, WhatMakesNoSenseIsRefused) {
  Texture texture = floats();
  texture.pitch = 1;
  EXPECT_FALSE(context().set_texture(kHandle, texture));
  EXPECT_EQ(context().remove_texture(kHandle + 9).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace heddle::conformance
