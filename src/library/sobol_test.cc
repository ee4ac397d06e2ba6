#include "library/sobol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "library/curand.h"
#include "library/random.h"

namespace heddle::library {
namespace {

// The property that makes points even: of 2^k, one lies in each of 2^k parts.
TEST(Sobol, EveryDimensionFillsEachPartOnce) {
  for (const uint32_t dimension : {0u, 1u, 2u, 3u, 17u, 400u, 19999u}) {
    for (const bool scrambled : {false, true}) {
      SobolPoints points(dimension, scrambled, 0);
      std::set<uint64_t> parts;
      for (int i = 0; i < 1024; ++i) parts.insert(points.next() >> 54);
      EXPECT_EQ(parts.size(), 1024u) << dimension;
    }
  }
}

TEST(Sobol, DimensionsDiffer) {
  std::set<std::array<uint64_t, kSobolBits>> seen;
  for (uint32_t dimension = 0; dimension < 2000; ++dimension) seen.insert(sobol_directions(dimension));
  EXPECT_EQ(seen.size(), 2000u);
}

TEST(Sobol, APositionIsWhereTheSequenceWouldBe) {
  SobolPoints from_start(5, false, 0);
  for (int i = 0; i < 1000; ++i) (void)from_start.next();
  SobolPoints later(5, false, 1000);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(later.next(), from_start.next());
}

// In pairs of the first dimensions too: the mean of a product is the product of the means, far closer than chance.
TEST(Sobol, IntegratesProducts) {
  for (uint32_t dimension = 1; dimension < 8; ++dimension) {
    SobolPoints x(dimension - 1, false, 0), y(dimension, false, 0);
    double sum = 0;
    const int count = 1 << 14;
    for (int i = 0; i < count; ++i)
      sum += static_cast<double>(x.next()) * 0x1p-64 * static_cast<double>(y.next()) * 0x1p-64;
    EXPECT_NEAR(sum / count, 0.25, 0.002) << dimension;
  }
}

curand::Draw quasi(int type, uint64_t count, uint32_t dimensions = 1) {
  curand::Draw draw;
  draw.type = type;
  draw.count = count;
  draw.dimensions = dimensions;
  return draw;
}

TEST(QuasiRandom, PointsOfADimensionStandTogether) {
  std::vector<uint32_t> together(300), single(100);
  curand::generate(curand::Function::kBits, quasi(201, 300, 3), together.data());
  SobolPoints third(2, false, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(together[200 + static_cast<size_t>(i)], third.next() >> 32);
  curand::generate(curand::Function::kBits, quasi(201, 100), single.data());
  EXPECT_TRUE(std::equal(single.begin(), single.end(), together.begin()));
}

TEST(QuasiRandom, HasTheDistributionsMoments) {
  const size_t count = 1 << 14;
  std::vector<double> numbers(count);
  auto draw = quasi(203, count);
  draw.a = 3, draw.b = 2;
  curand::generate(curand::Function::kNormalDouble, draw, numbers.data());
  double mean = 0, variance = 0;
  for (const double each : numbers) mean += each / count;
  for (const double each : numbers) variance += (each - mean) * (each - mean) / count;
  EXPECT_NEAR(mean, 3, 0.002);
  EXPECT_NEAR(variance, 4, 0.02);  // the first point is 8 deviations away
  std::vector<uint32_t> counts(count);
  for (const double expected : {12.0, 2000.0}) {
    draw.a = expected;
    curand::generate(curand::Function::kPoisson, draw, counts.data());
    mean = 0;
    for (const uint32_t each : counts) mean += each / static_cast<double>(count);
    EXPECT_NEAR(mean, expected, expected / 1000);
  }
}

TEST(QuasiRandom, IsRefusedWhereItMakesNoSense) {
  const auto check = [](curand::Function function, const curand::Draw& draw) {
    const auto words = draw.pack();
    return demand({Library::kCurand, static_cast<uint32_t>(function), words});
  };
  EXPECT_TRUE(check(curand::Function::kBits, quasi(201, 300, 3)));
  EXPECT_FALSE(check(curand::Function::kBits, quasi(201, 301, 3)));
  EXPECT_FALSE(check(curand::Function::kBits, quasi(201, 0, 0)));
  EXPECT_FALSE(check(curand::Function::kBits, quasi(201, 20001, 20001)));
  EXPECT_EQ(check(curand::Function::kBits, quasi(203, 3)).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(check(curand::Function::kBits64, quasi(201, 3)).error().code, ErrorCode::kNotSupported);
  EXPECT_EQ(check(curand::Function::kBits64, quasi(curand::kPhilox, 3)).error().code, ErrorCode::kNotSupported);
  auto table = quasi(0, 640000);
  table.ordering = 101;
  EXPECT_FALSE(check(curand::Function::kDirections32, table));  // not on the host
  table.host = true;
  EXPECT_TRUE(check(curand::Function::kDirections32, table));
  table.count = 640001;
  EXPECT_FALSE(check(curand::Function::kDirections32, table));
  table.count = 1, table.ordering = 103;
  EXPECT_FALSE(check(curand::Function::kDirections32, table));
  EXPECT_TRUE(check(curand::Function::kDirections64, table));
}

}  // namespace
}  // namespace heddle::library
