#include "core/texture.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

Texture floats_2d(uint32_t width, uint32_t height) {
  Texture texture;
  texture.address = 0x200000000000 / 4;
  texture.shape = TextureShape::k2D;
  texture.width = width, texture.height = height;
  texture.pitch = 4ull * width;
  return texture;
}

TEST(TextureCheck, OneThatMakesSensePasses) {
  EXPECT_TRUE(check(floats_2d(64, 32)));
  EXPECT_EQ(floats_2d(64, 32).bytes(), 64u * 32 * 4);
}

TEST(TextureCheck, AFormatThatDoesNotExistIsRefused) {
  Texture texture = floats_2d(64, 32);
  texture.channels = 3;
  EXPECT_FALSE(check(texture));
  texture.channels = 1, texture.channel_bytes = 1;  // floats of 8 bits
  EXPECT_FALSE(check(texture));
  texture.kind = static_cast<TexelKind>(9), texture.channel_bytes = 4;
  EXPECT_FALSE(check(texture));
}

TEST(TextureCheck, ADimensionThatTheShapeLacksIsRefused) {
  Texture texture = floats_2d(64, 32);
  texture.depth = 2, texture.slice = 1 << 20;
  EXPECT_FALSE(check(texture));
  texture.shape = TextureShape::k3D;
  EXPECT_TRUE(check(texture));
  texture.shape = TextureShape::kCube;
  EXPECT_FALSE(check(texture));
  texture.height = 64, texture.depth = 6;
  EXPECT_TRUE(check(texture));
}

TEST(TextureCheck, SizesThatOverflowOrOverlapAreRefused) {
  Texture texture = floats_2d(64, 32);
  texture.pitch = 255;
  EXPECT_FALSE(check(texture));
  texture.pitch = 1ull << 63;
  EXPECT_FALSE(check(texture));
  texture = floats_2d(1u << 28, 1u << 28);
  EXPECT_FALSE(check(texture));
  texture = floats_2d(0, 4);
  EXPECT_FALSE(check(texture));
  texture = floats_2d(4, 4);
  texture.address = ~uint64_t{0};
  EXPECT_FALSE(check(texture));
}

TEST(TextureImage, IsNotNeededForWhatAGpuReadsWhereItLies) {
  EXPECT_FALSE(needs_image(floats_2d(64, 32)));
  Texture buffer = floats_2d(63, 1);
  buffer.shape = TextureShape::k1D;
  buffer.flags = Texture::kBuffer;
  EXPECT_FALSE(needs_image(buffer));
}

TEST(TextureImage, IsNeededForTheRest) {
  Texture texture = floats_2d(64, 32);
  texture.flags = Texture::kSurface;
  EXPECT_TRUE(needs_image(texture));
  texture.flags = Texture::kGather;
  EXPECT_TRUE(needs_image(texture));
  EXPECT_TRUE(needs_image(floats_2d(63, 32))) << "rows of 252 bytes";
  Texture shifted = floats_2d(64, 32);
  shifted.address += 256;
  EXPECT_TRUE(needs_image(shifted));
  Texture line = floats_2d(64, 1);
  line.shape = TextureShape::k1D;
  EXPECT_TRUE(needs_image(line));
}

TEST(TextureImage, TakesNoLessThanAGpuTook) {  // cuArrayGetMemoryRequirements on an H200
  EXPECT_GE(image_bytes(floats_2d(1000, 1000)), 4128768u);
  EXPECT_GE(image_bytes(floats_2d(4096, 4096)), 67108864u);
  EXPECT_LE(image_bytes(floats_2d(4096, 4096)), 67108864u);
  EXPECT_EQ(image_bytes(floats_2d(100, 1)), 2u << 20);
}

}  // namespace
}  // namespace heddle
