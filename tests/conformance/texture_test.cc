// Texture and surface objects: that launches find them, and which ones. What a fetch gives is tested where it is
// computed.

#include "conformance_test.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kHandle = 0x4854'01'00'00000000 + kFirstTextureNumber + kTextureNumberStep;
constexpr uint64_t kNext = kHandle + kTextureNumberStep;
constexpr uint32_t kWidth = 32, kHeight = 4;

class TextureTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ConformanceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    context().set_room(Bytes{8 * kMiB});
    memory_ = map(4096);
    out_ = map(4096);
    ASSERT_TRUE(context().set_texture(kHandle, floats()));
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
  ASSERT_TRUE(context().set_texture(kNext, texture));
  sample(1, 2, kNext);
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
  ASSERT_TRUE(context().set_texture(kNext, texture));
  launch(0, "fetch", {1}, {8}, Parameters(kNext, int32_t{-2}, out_));
  finish();
  EXPECT_EQ(read<int>(out_, 8), (std::vector<int>{0, 0, 7, 8, 9, 10, 0, 0}));
}

TEST_P(TextureTest, SurfacesAreWritten) {
  write_floats();
  Texture surface = floats();
  surface.flags = Texture::kSurface;
  ASSERT_TRUE(context().set_texture(kNext, surface));
  launch(0, "write_surface", {1}, {kWidth, kHeight}, Parameters(kNext, 0.5f));
  finish();
  const auto values = read<float>(memory_, kWidth * kHeight);
  EXPECT_EQ(values[0], 0.5f);
  EXPECT_EQ(values[kWidth * 3 + 5], 305.5f);
}

TEST_P(TextureTest, WhatASurfaceWroteIsSeenByTextures) {
  Texture surface = floats();
  surface.flags = Texture::kSurface;
  ASSERT_TRUE(context().set_texture(kNext, surface));
  write_floats();
  launch(0, "write_surface", {1}, {kWidth, kHeight}, Parameters(kNext, 0.25f));
  sample(0, 3);
  finish();
  EXPECT_EQ(sampled()[7], 307.25f);
}

// Rows that a GPU cannot read where they lie: it makes a copy of them, which must not grow old.
TEST_P(TextureTest, WhatIsCopiedToOddRowsLaterIsSeen) {
  Texture odd = floats();
  odd.width = kWidth - 1;
  odd.pitch = 4 * odd.width;
  ASSERT_TRUE(context().set_texture(kNext, odd));
  fill(0, memory_, 0, 4 * kWidth * kHeight);
  sample(0, 1, kNext);
  finish();
  EXPECT_EQ(sampled()[3], 0);
  write_floats();
  sample(0, 1, kNext);
  finish();
  EXPECT_EQ(sampled()[3], 102);  // element 34 of rows of 32
}

TEST_P(TextureTest, CopiesOnOtherStreamsAreSeenByWhoWaitsForThem) {
  Texture odd = floats();
  odd.width = kWidth - 1;
  odd.pitch = 4 * odd.width;
  ASSERT_TRUE(context().set_texture(kNext, odd));
  ASSERT_TRUE(context().create_stream(1, true, 0));
  ASSERT_TRUE(context().create_stream(2, true, 0));
  std::vector<float> values(kWidth * kHeight, 5);
  const device::Tag copied = to_device(1, memory_, values.data(), 4 * values.size());
  const device::Tag waited = next_tag();
  ASSERT_TRUE(context().wait(2, copied, waited));
  EXPECT_EQ(wait_for(launch(2, "sample", {1}, {kWidth}, Parameters(kNext, 0.0f, 1.0f, out_))).cuda_error, 0u);
  EXPECT_EQ(sampled()[3], 5);
}

TEST_P(TextureTest, AnObjectOutlivesItsMemory) {
  write_floats();
  sample(0, 2);
  finish();
  ASSERT_TRUE(context().unmap(memory_, Bytes{2 * kMiB}));
  const auto other = target().allocate(Bytes{2 * kMiB});
  ASSERT_TRUE(other && context().map(memory_, Bytes{2 * kMiB}, *other, false));
  fill(0, memory_, 0, 4 * kWidth * kHeight);
  sample(0, 2);
  finish();
  EXPECT_EQ(sampled()[3], 0);
}

TEST_P(TextureTest, ARemovedObjectIsGone) {
  sample(0, 1);
  finish();
  ASSERT_TRUE(context().remove_texture(kHandle));
  EXPECT_EQ(context().remove_texture(kHandle).error().code, ErrorCode::kNotFound);
}

// Restored by a new worker, they come in any order.
TEST_P(TextureTest, ObjectsThatAreSetTogetherHaveTheirNumbers) {
  write_floats();
  for (const int i : {3, 1, 9}) {
    Texture row = floats();
    row.address += i % 4 * row.pitch;
    row.height = 1;
    ASSERT_TRUE(context().set_texture(kHandle + i * kTextureNumberStep, row));
  }
  sample(0, 0, kHandle + 3 * kTextureNumberStep);
  finish();
  EXPECT_EQ(sampled()[5], 305);
  sample(0, 0, kHandle + 9 * kTextureNumberStep);
  finish();
  EXPECT_EQ(sampled()[5], 105);
}

TEST_P(TextureTest, TheSameObjectMayBeSetTwiceAnotherOfItsNumberNot) {
  EXPECT_TRUE(context().set_texture(kHandle, floats()));
  Texture other = floats();
  other.flags = Texture::kLinearFilter;
  EXPECT_EQ(context().set_texture(kHandle, other).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(context().set_texture(kHandle + (1ull << 32), other).error().code, ErrorCode::kInvalidArgument);
}

TEST_P(TextureTest, WhatMakesNoSenseIsRefused) {
  Texture texture = floats();
  texture.pitch = 1;
  EXPECT_FALSE(context().set_texture(kNext, texture));
  EXPECT_EQ(context().remove_texture(kHandle + 9 * kTextureNumberStep).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace heddle::conformance
