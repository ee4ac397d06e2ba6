// A test's wait, on a machine that runs and on one that stands still.

#include "core/testing/patience.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1), kRound = std::chrono::milliseconds(2);

TEST(Patience, IsOverAfterItsLimit) {
  ManualClock clock;
  Patience patience(kMinute, clock);
  for (Duration waited = kRound; waited <= kMinute; waited += kRound) {
    clock.advance(kRound);
    ASSERT_FALSE(patience.is_over()) << to_string(waited);
  }
  clock.advance(kRound);
  EXPECT_TRUE(patience.is_over());
}

TEST(Patience, IsNotOverBecauseTheMachineStoodStill) {
  ManualClock clock;
  Patience patience(kMinute, clock);
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(patience.is_over());
}

TEST(Patience, IsOverWhereEachRoundIsLong) {
  ManualClock clock;
  Patience patience(kMinute, clock);
  int rounds = 0;
  for (; !patience.is_over(); ++rounds) clock.advance(std::chrono::hours(1));
  EXPECT_EQ(rounds, kMinute / Patience::kLongestRound + 1);
}

}  // namespace
}  // namespace heddle
