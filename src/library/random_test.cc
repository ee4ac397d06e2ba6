#include "library/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "library/curand.h"
#include "library/philox.h"

namespace heddle::library {
namespace {

// The known answers that the generator's authors publish with it.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0ull), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// What cuRAND 10.4 draws from CURAND_RNG_PSEUDO_PHILOX4_32_10 with seed 1234, on the host.
TEST(Random, FollowsCurandsOrderForPhilox) {
  uint32_t bits[8];
  draw_bits({1234, 0}, bits, 8);
  EXPECT_EQ(std::vector(bits, bits + 8), (std::vector<uint32_t>{0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e,
                                                                0xd115a128, 0x52fc7c75, 0xc7f33f17, 0x0f1539db}));
  draw_bits({1234, 262144}, bits, 1);
  EXPECT_EQ(bits[0], 0x9eeede35);  // the second turn of the first subsequence
  float uniform[3];
  draw_uniform({1234, 0}, uniform, 3);
  EXPECT_FLOAT_EQ(uniform[0], 0.12720795f);
  EXPECT_FLOAT_EQ(uniform[2], 0.265648872f);
  double doubles[3];
  draw_uniform({1234, 0}, doubles, 3);
  EXPECT_DOUBLE_EQ(doubles[0], 0.85346899543001431);
  EXPECT_DOUBLE_EQ(doubles[2], 0.11227557330034327);
  float normal[2];
  draw_normal({1234, 0}, normal, 2, 0, 1);
  EXPECT_NEAR(normal[0], -1.61649048, 1e-5);
  EXPECT_NEAR(normal[1], 1.22915542, 1e-5);
  double wide[2];
  draw_normal({1234, 0}, wide, 2, 0, 1);
  EXPECT_NEAR(wide[0], -0.53952669590731883, 1e-14);
  EXPECT_NEAR(wide[1], 0.16063334644202293, 1e-14);
}

template <class Number, class Draw>
void expect_the_same_in_pieces(Draw&& draw) {
  std::vector<Number> whole(1000), pieces(1000);
  draw(Sequence{7, 300'000}, whole.data(), 1000);
  uint64_t at = 0;
  for (const uint64_t length : {1, 2, 3, 250, 4, 1, 739}) {
    draw(Sequence{7, 300'000 + at}, pieces.data() + at, length);
    at += length;
  }
  ASSERT_EQ(at, 1000u);
  EXPECT_EQ(whole, pieces);
}

TEST(Random, DrawsTheSameInPieces) {
  expect_the_same_in_pieces<uint32_t>(draw_bits);
  expect_the_same_in_pieces<float>([](auto from, float* to, uint64_t count) { draw_uniform(from, to, count); });
  expect_the_same_in_pieces<double>([](auto from, double* to, uint64_t count) { draw_uniform(from, to, count); });
  expect_the_same_in_pieces<float>([](auto from, float* to, uint64_t count) { draw_normal(from, to, count, 1, 2); });
  expect_the_same_in_pieces<double>([](auto from, double* to, uint64_t count) { draw_normal(from, to, count, 1, 2); });
  expect_the_same_in_pieces<uint32_t>([](auto from, uint32_t* to, uint64_t n) { draw_poisson(from, to, n, 20); });
}

struct Moments {
  double mean = 0, variance = 0;
};
template <class Number>
Moments moments(const std::vector<Number>& numbers) {
  Moments of;
  for (const Number number : numbers) of.mean += static_cast<double>(number) / static_cast<double>(numbers.size());
  for (const Number number : numbers)
    of.variance += std::pow(static_cast<double>(number) - of.mean, 2) / static_cast<double>(numbers.size());
  return of;
}

// 200,000 numbers: a mean is off by less than a hundredth of the deviation, in all but one of 100,000 sequences.
constexpr size_t kMany = 200'000;

TEST(Random, HasTheDistributionsMoments) {
  std::vector<float> uniform(kMany), normal(kMany);
  draw_uniform({42, 0}, uniform.data(), kMany);
  EXPECT_GT(*std::min_element(uniform.begin(), uniform.end()), 0);
  EXPECT_LE(*std::max_element(uniform.begin(), uniform.end()), 1);
  EXPECT_NEAR(moments(uniform).mean, 0.5, 0.003);
  EXPECT_NEAR(moments(uniform).variance, 1 / 12.0, 0.001);
  draw_normal({42, 0}, normal.data(), kMany, -3, 2);
  EXPECT_NEAR(moments(normal).mean, -3, 0.02);
  EXPECT_NEAR(moments(normal).variance, 4, 0.06);
  for (const double mean : {0.3, 5.0, 120.0, 2000.0}) {
    std::vector<uint32_t> poisson(kMany);
    draw_poisson({42, 0}, poisson.data(), kMany, mean);
    EXPECT_NEAR(moments(poisson).mean, mean, 0.01 * std::sqrt(mean)) << mean;
    EXPECT_NEAR(moments(poisson).variance, mean, 0.02 * mean) << mean;
  }
}

TEST(CurandCall, TravelsAsItIs) {
  const curand::Draw draw{3, 4, curand::kPhilox, 100, 5, 6, 7, 0x1000, 8, 0.5, 2.5};
  const auto words = draw.pack();
  const auto back = curand::Draw::unpack(words);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pack(), words);
  EXPECT_EQ(back->generator, 3u);
  EXPECT_EQ(back->b, 2.5);
}

TEST(CurandCall, IsRefusedWhereItMakesNoSense) {
  const curand::Draw draw{1, 1, curand::kPhilox, 0, 0, 0, 0, 0x1000, 10, 5, 0};
  const auto check = [](uint32_t function, const curand::Draw& of) {
    const auto words = of.pack();
    const auto demand = library::demand({Library::kCurand, function, words});
    return demand ? std::string("well") : demand.error().text;
  };
  EXPECT_EQ(check(0, draw), "well");
  EXPECT_NE(check(curand::kFunctions, draw), "well");
  curand::Draw other = draw;
  other.type = 105;  // none
  EXPECT_NE(check(0, other), "well");
  other = draw;
  other.a = -1;
  EXPECT_EQ(check(0, other), "well");
  EXPECT_NE(check(static_cast<uint32_t>(curand::Function::kPoisson), other), "well");
  other = draw;
  other.count = UINT64_MAX;
  EXPECT_NE(check(0, other), "well");
  const auto words = draw.pack();
  EXPECT_FALSE(library::demand({Library::kCurand, 0, std::span(words).first(8)}));
}

}  // namespace
}  // namespace heddle::library
