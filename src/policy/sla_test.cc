#include "policy/sla.h"

#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

constexpr Duration millis_of(double count) {
  return Duration(static_cast<int64_t>(count * 1e6));
}

TEST(Percentiles, AreWithinTwoPercentOfEachValue) {
  for (double value = 0.001; value < 1e8; value *= 1.37) {
    Percentiles one;
    one.add(millis_of(value));
    one.add(millis_of(1e9));  // so that the largest does not help
    EXPECT_GE(one.at(0.5), millis_of(value));
    EXPECT_LE(one.at(0.5), millis_of(1.035 * value) + std::chrono::microseconds(1)) << value << " ms";
  }
}

TEST(Percentiles, FindTheValueThatAPartIsBelow) {
  Percentiles all;
  for (int value = 1; value <= 1000; ++value) all.add(millis_of(value));
  EXPECT_NEAR(static_cast<double>(all.at(0.5).count()), 500e6, 16e6);
  EXPECT_NEAR(static_cast<double>(all.at(0.99).count()), 990e6, 16e6);
  EXPECT_EQ(all.at(1), millis_of(1000));
  EXPECT_EQ(Percentiles().at(0.99), Duration{});
}

TEST(Percentiles, OfSeveralAreThoseOfAllTheirValues) {
  Percentiles little, much;
  for (int value = 1; value <= 90; ++value) little.add(millis_of(1));
  for (int value = 1; value <= 10; ++value) much.add(millis_of(100));
  much.add(little);
  EXPECT_EQ(much.count(), 100u);
  EXPECT_LT(much.at(0.9), millis_of(1.1));
  EXPECT_EQ(much.at(0.91), millis_of(100));
}

// What comes of a clock that went back, or of a stay of years, is no reason to write beyond the counters.
TEST(Percentiles, BearWithAnything) {
  Percentiles odd;
  odd.add(millis_of(-5));
  odd.add(Duration::max());
  EXPECT_EQ(odd.at(0.5), Duration{});
  EXPECT_GT(odd.at(1), std::chrono::hours(23));
}

TEST(Sla, ARequestIsMetWhenItEndsWithinItsSlo) {
  Sla sla;
  EXPECT_EQ(sla.share_met(), 1);
  sla.request_ended(millis_of(200), millis_of(150), millis_of(200));
  sla.request_ended(millis_of(200.001), millis_of(0), millis_of(200));
  sla.request_missed();
  sla.request_ended(millis_of(3), millis_of(0), millis_of(200));
  EXPECT_EQ(sla.requests(), 4u);
  EXPECT_EQ(sla.met(), 2u);
  EXPECT_DOUBLE_EQ(sla.share_met(), 0.5);
  EXPECT_EQ(sla.times().count(), 3u);  // one has no end
}

TEST(Sla, LostWorkIsAPartOfAllThatWasDone) {
  Sla first, second;
  EXPECT_EQ(first.share_lost(), 0);
  first.was_busy(millis_of(900));
  second.was_busy(millis_of(100));
  second.work_lost(millis_of(30));
  second.revoked(millis_of(15), true);
  second.revoked(millis_of(2), false);
  first.add(second);
  EXPECT_DOUBLE_EQ(first.share_lost(), 0.03);
  EXPECT_EQ(first.revocations(), 2u);
  EXPECT_EQ(first.terminations(), 1u);
  EXPECT_EQ(first.revocation_latencies().at(1), millis_of(15));
  EXPECT_EQ(first.termination_latencies().at(0.5), millis_of(15));
}

}  // namespace
}  // namespace heddle::policy
