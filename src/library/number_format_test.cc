#include "library/number_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heddle::library {
namespace {

TEST(NumberFormat, EveryHalfComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_half(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_of_half(half_of(value)))) << bits;
    } else {
      EXPECT_EQ(half_of(value), bits);
    }
  }
}

TEST(NumberFormat, EveryBfloatComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float_of_bfloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_of_bfloat(bfloat_of(value)))) << bits;
    } else {
      EXPECT_EQ(bfloat_of(value), bits);
    }
  }
}

TEST(NumberFormat, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(half_of(1.0f), 0x3c00);
  EXPECT_EQ(half_of(1.0f + 0x1p-11f), 0x3c00);             // a tie, down
  EXPECT_EQ(half_of(1.0f + 0x3p-11f), 0x3c02);             // a tie, up
  EXPECT_EQ(half_of(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // beyond the tie
  EXPECT_EQ(half_of(65519.0f), 0x7bff);                    // the largest
  EXPECT_EQ(half_of(65520.0f), 0x7c00);                    // infinity
  EXPECT_EQ(half_of(-0x1p-24f), 0x8001);                   // the smallest
  EXPECT_EQ(half_of(0x1p-25f), 0x0000);                    // a tie, to zero
  EXPECT_EQ(half_of(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(bfloat_of(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bfloat_of(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(bfloat_of(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace heddle::library
