#include "device/software/simt/sampler.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

float as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// Textures over memory of a small machine; element (x, y, z) of a float texture is x + 10 y + 100 z.
class Sampling : public ::testing::Test {
 protected:
  Texture floats(TextureShape shape, uint32_t width, uint32_t height = 1, uint32_t depth = 1) {
    std::vector<float> values;
    for (uint32_t z = 0; z < depth; ++z)
      for (uint32_t y = 0; y < height; ++y)
        for (uint32_t x = 0; x < width; ++x) values.push_back(static_cast<float>(x + 10 * y + 100 * z));
    return over(values, shape, width, height, depth);
  }
  template <class T>
  Texture over(const std::vector<T>& values, TextureShape shape, uint32_t width, uint32_t height = 1,
               uint32_t depth = 1) {
    Texture texture;
    texture.shape = shape;
    texture.width = width, texture.height = height, texture.depth = depth;
    texture.address = machine_.put(values);
    texture.channel_bytes = static_cast<uint8_t>(std::min<size_t>(sizeof(T), 4));
    texture.pitch = sizeof(T) * width;
    texture.slice = texture.pitch * height;
    return texture;
  }
  Texel sample(const Texture& texture, float x, float y = 0, float z = 0, uint32_t layer = 0) {
    EXPECT_TRUE(check(texture)) << check(texture).error().text;
    Sampler sampler(texture, machine_.memory());
    Texel texel = sampler.sample({{x, y, z}, layer});
    EXPECT_EQ(sampler.bad_address(), 0u);
    return texel;
  }
  float value(const Texture& texture, float x, float y = 0, float z = 0, uint32_t layer = 0) {
    return as_float(sample(texture, x, y, z, layer)[0]);
  }
  Machine machine_;
};

TEST_F(Sampling, TheNearestElementIsTheOneThatThePlaceLiesIn) {
  Texture texture = floats(TextureShape::k2D, 8, 4);
  EXPECT_EQ(value(texture, 2.0f, 1.0f), 12);
  EXPECT_EQ(value(texture, 2.99f, 1.99f), 12);
  EXPECT_EQ(value(texture, 3.0f, 2.0f), 23);
}

TEST_F(Sampling, ChannelsThatTheFormatLacksAreZeroAndOne) {
  const Texel texel = sample(floats(TextureShape::k1D, 8), 3.5f);
  EXPECT_EQ(as_float(texel[0]), 3);
  EXPECT_EQ(texel[1], 0u);
  EXPECT_EQ(texel[2], 0u);
  EXPECT_EQ(as_float(texel[3]), 1);
}

TEST_F(Sampling, ALinearFilterWeighsInStepsOfA256th) {
  Texture texture = over(std::vector<float>{0, 1}, TextureShape::k1D, 2);
  texture.flags = Texture::kLinearFilter;
  EXPECT_EQ(value(texture, 0.5f), 0);
  EXPECT_EQ(value(texture, 1.0f), 0.5f);
  EXPECT_EQ(value(texture, 1.5f), 1);
  EXPECT_EQ(value(texture, 0.5f + 1.0f / 256), 1.0f / 256);
  EXPECT_EQ(value(texture, 0.5f + 1.2f / 256), 1.0f / 256);  // nothing finer
  EXPECT_EQ(value(texture, 0.5f + 255.9f / 256), 1);
  EXPECT_EQ(value(texture, -3), 0);
}

TEST_F(Sampling, ALinearFilterMixesFourElementsAndEight) {
  Texture flat = floats(TextureShape::k2D, 8, 4), solid = floats(TextureShape::k3D, 8, 4, 4);
  flat.flags = solid.flags = Texture::kLinearFilter;
  EXPECT_EQ(value(flat, 3.0f, 2.0f), (12 + 13 + 22 + 23) / 4.0f + 0);
  EXPECT_EQ(value(solid, 3.0f, 2.0f, 1.75f), 17.5f + 125);
}

// One channel of four bytes has a way of its own; the first of two channels goes the general one.
TEST_F(Sampling, TheShortWayGivesWhatTheLongOneDoes) {
  constexpr uint32_t kWidth = 7, kHeight = 5;
  std::mt19937 random(20);
  std::vector<float> one, two;
  for (uint32_t i = 0; i < kWidth * kHeight; ++i) {
    one.push_back(static_cast<float>(random()) / 1e6f - 2000);
    two.insert(two.end(), {one.back(), -1});
  }
  for (const TextureShape shape : {TextureShape::k1D, TextureShape::k2D}) {
    const uint32_t height = shape == TextureShape::k1D ? 1 : kHeight;
    Texture single = over(one, shape, kWidth, height), pair = over(two, shape, 2 * kWidth, height);
    pair.width = kWidth;
    pair.channels = 2;
    for (const uint32_t flags : {0u, Texture::kLinearFilter}) {
      single.flags = pair.flags = flags;
      for (int i = 0; i < 2000; ++i) {
        const float x = static_cast<float>(random() % 4096) / 512 - 0.25f,
                    y = static_cast<float>(random() % 3072) / 512;
        EXPECT_EQ(sample(single, x, y)[0], sample(pair, x, y)[0]) << x << ", " << y;
      }
    }
  }
}

TEST_F(Sampling, WhatCountsForNothingMayBeInfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  Texture texture = over(std::vector<float>{infinity, 4, infinity}, TextureShape::k1D, 3);
  texture.flags = Texture::kLinearFilter;
  EXPECT_EQ(value(texture, 1.5f), 4);
}

TEST_F(Sampling, AddressingModesBeyondBothEnds) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.flags = Texture::kNormalizedCoordinates;
  const auto along = [&](AddressMode mode) {
    texture.modes[0] = mode;
    std::vector<float> values;
    for (int i = -5; i <= 8; ++i) values.push_back(value(texture, (static_cast<float>(i) + 0.5f) / 4));
    return values;
  };
  texture.border[0] = std::bit_cast<uint32_t>(-1.0f);
  EXPECT_EQ(along(AddressMode::kClamp), (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(along(AddressMode::kWrap), (std::vector<float>{3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}));
  EXPECT_EQ(along(AddressMode::kMirror), (std::vector<float>{3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0}));
  EXPECT_EQ(along(AddressMode::kBorder), (std::vector<float>{-1, -1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, -1}));
}

TEST_F(Sampling, AFilterMixesAcrossTheEndAsTheModeSays) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.flags = Texture::kNormalizedCoordinates | Texture::kLinearFilter;
  const auto at_the_end = [&](AddressMode mode) {
    texture.modes[0] = mode;
    return value(texture, 1);
  };
  EXPECT_EQ(at_the_end(AddressMode::kClamp), 3);
  EXPECT_EQ(at_the_end(AddressMode::kWrap), 1.5f);
  EXPECT_EQ(at_the_end(AddressMode::kMirror), 3);
  EXPECT_EQ(at_the_end(AddressMode::kBorder), 1.5f);
}

TEST_F(Sampling, WithoutNormalizedCoordinatesWrappingIsClamping) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.modes[0] = AddressMode::kWrap;
  EXPECT_EQ(value(texture, 5), 3);
}

TEST_F(Sampling, PlacesThatAreNoNumbersAndFarAwayAreSomewhere) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.flags = Texture::kNormalizedCoordinates;
  for (AddressMode mode : {AddressMode::kClamp, AddressMode::kWrap, AddressMode::kMirror, AddressMode::kBorder}) {
    texture.modes[0] = mode;
    for (float x : {NAN, INFINITY, -INFINITY, 3e38f, -3e38f}) {
      const float found = value(texture, x);
      EXPECT_GE(found, 0);
      EXPECT_LE(found, 3);
    }
  }
}

TEST_F(Sampling, IntegersAsTheyAreAndNormalized) {
  Texture bytes = over(std::vector<uint8_t>{0, 51, 255, 128}, TextureShape::k1D, 4);
  bytes.kind = TexelKind::kUnsigned;
  EXPECT_EQ(sample(bytes, 1.5f)[0], 51u);
  EXPECT_EQ(sample(bytes, 1.5f)[3], 1u);
  bytes.flags = Texture::kNormalizedValues;
  EXPECT_EQ(value(bytes, 1.5f), 51 / 255.0f);
  EXPECT_EQ(value(bytes, 2.5f), 1);
  bytes.kind = TexelKind::kSigned;
  EXPECT_EQ(value(bytes, 3.5f), -1);
  bytes.flags = 0;
  EXPECT_EQ(static_cast<int32_t>(sample(bytes, 3.5f)[0]), -128);
  Texture shorts = over(std::vector<int16_t>{32767, -32768, -1, 0}, TextureShape::k1D, 4);
  shorts.kind = TexelKind::kSigned;
  EXPECT_EQ(static_cast<int32_t>(sample(shorts, 2.5f)[0]), -1);
  shorts.flags = Texture::kNormalizedValues;
  EXPECT_EQ(value(shorts, 0.5f), 1);
  EXPECT_EQ(value(shorts, 1.5f), -1);
}

TEST_F(Sampling, HalvesAreReadAsFloats) {
  Texture texture = over(std::vector<uint16_t>{0x3C00, 0xC000, 0x7C00, 0}, TextureShape::k1D, 4);
  EXPECT_EQ(value(texture, 0.5f), 1);
  EXPECT_EQ(value(texture, 1.5f), -2);
  EXPECT_EQ(value(texture, 2.5f), std::numeric_limits<float>::infinity());
}

TEST_F(Sampling, SrgbBecomesLinearInAllChannelsButTheFourth) {
  Texture texture = over(std::vector<uint32_t>{0x80808080}, TextureShape::k1D, 1);
  texture.channels = 4, texture.channel_bytes = 1, texture.kind = TexelKind::kUnsigned;
  texture.flags = Texture::kNormalizedValues | Texture::kSrgb;
  const Texel texel = sample(texture, 0.5f);
  EXPECT_NEAR(as_float(texel[0]), 0.2158605, 1e-6);
  EXPECT_EQ(as_float(texel[3]), 128 / 255.0f);
}

TEST_F(Sampling, LayersAreNotMixedAndEndAtTheLast) {
  Texture texture = floats(TextureShape::k2DLayered, 4, 4, 3);
  texture.flags = Texture::kLinearFilter;
  EXPECT_EQ(value(texture, 1.5f, 1.5f, 0, 2), 211);
  EXPECT_EQ(value(texture, 1.5f, 1.5f, 0, 9), 211);
}

TEST_F(Sampling, ACubeIsSeenFromItsMiddle) {
  Texture texture = floats(TextureShape::kCube, 4, 4, 6);
  EXPECT_EQ(value(texture, 1, -0.9f, -0.9f), 33);    // +x: s = -z, t = -y
  EXPECT_EQ(value(texture, -1, -0.9f, -0.9f), 130);  // -x: s = z
  EXPECT_EQ(value(texture, -0.9f, 1, 0.9f), 230);    // +y: s = x, t = z
  EXPECT_EQ(value(texture, -0.9f, -1, 0.9f), 300);   // -y: t = -z
  EXPECT_EQ(value(texture, 0.9f, 0.9f, 1), 403);     // +z: s = x, t = -y
  EXPECT_EQ(value(texture, 0.9f, 0.9f, -1), 500);    // -z: s = -x
  Texture two = floats(TextureShape::kCubeLayered, 4, 4, 12);
  EXPECT_EQ(value(two, 1, -0.9f, -0.9f, 1), 633);
}

TEST_F(Sampling, AGatherGivesTheFootprintCounterClockwise) {
  Texture texture = floats(TextureShape::k2D, 8, 4);
  Sampler sampler(texture, machine_.memory());
  const Texel texel = sampler.gather({{3, 2, 0}, 0}, 0);
  EXPECT_EQ(as_float(texel[0]), 22);
  EXPECT_EQ(as_float(texel[1]), 23);
  EXPECT_EQ(as_float(texel[2]), 13);
  EXPECT_EQ(as_float(texel[3]), 12);
}

TEST_F(Sampling, ABufferIsZeroOutside) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.flags = Texture::kBuffer;
  Sampler sampler(texture, machine_.memory());
  const auto at = [&](int32_t x) {
    const int32_t place[3] = {x, 0, 0};
    return as_float(sampler.element(place, 0)[0]);
  };
  EXPECT_EQ(at(3), 3);
  EXPECT_EQ(at(4), 0);
  EXPECT_EQ(at(-1), 0);
}

TEST_F(Sampling, MemoryThatIsNotThereIsReported) {
  Texture texture = floats(TextureShape::k1D, 4);
  texture.address = 0x1000;
  Sampler sampler(texture, machine_.memory());
  sampler.sample({{2.5f, 0, 0}, 0});
  EXPECT_EQ(sampler.bad_address(), 0x1008u);
}

}  // namespace
}  // namespace heddle::software
