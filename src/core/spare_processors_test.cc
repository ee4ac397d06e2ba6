#include "core/spare_processors.h"

#include <gtest/gtest.h>

#include "core/clock.h"

namespace heddle {
namespace {

using std::chrono::milliseconds;

TEST(SpareProcessors, FewProcessorsHaveNoneToSpare) {
  const SpareProcessors processors(SpareProcessors::kFewest - 1);
  EXPECT_EQ(processors.may_look(TimePoint{}), SpareProcessors::kShort);
}

TEST(SpareProcessors, InterruptedThreadMakesTheProcessSleep) {
  SpareProcessors processors(16);
  ManualClock clock;
  EXPECT_EQ(processors.may_look(clock.now()), SpareProcessors::kLong);
  processors.interrupted(clock.now());
  EXPECT_EQ(processors.may_look(clock.now()), SpareProcessors::kShort);
  clock.advance(SpareProcessors::kShortestPause);
  EXPECT_EQ(processors.may_look(clock.now()), SpareProcessors::kLong);
}

TEST(SpareProcessors, EachFurtherInterruptionDoublesThePause) {
  SpareProcessors processors(16);
  ManualClock clock;
  for (Duration pause = SpareProcessors::kShortestPause; pause < SpareProcessors::kLongestPause; pause *= 2) {
    processors.interrupted(clock.now());
    clock.advance(pause - Duration(1));
    ASSERT_FALSE(processors.are_there(clock.now())) << to_string(pause);
    clock.advance(Duration(1));
    ASSERT_TRUE(processors.are_there(clock.now())) << to_string(pause);
  }
  for (int i = 0; i < 3; ++i) {
    processors.interrupted(clock.now());
    clock.advance(SpareProcessors::kLongestPause);
    EXPECT_TRUE(processors.are_there(clock.now()));
  }
}

TEST(SpareProcessors, UndisturbedWaitsShortenThePause) {
  SpareProcessors processors(16);
  ManualClock clock;
  for (int i = 0; i < 5; ++i) processors.interrupted(clock.now());
  for (int i = 0; i < 5; ++i) processors.undisturbed();
  clock.advance(SpareProcessors::kLongestPause);
  processors.interrupted(clock.now());
  clock.advance(SpareProcessors::kShortestPause);
  EXPECT_TRUE(processors.are_there(clock.now()));
}

TEST(Looker, ProgramThatAsksToBlockDoesNotLook) {
  Looker looker(milliseconds(10), WaitMode::kBlock);
  EXPECT_FALSE(looker.goes_on());
}

TEST(Looker, LooksNoLongerThanItIsAllowedTo) {
  for (const WaitMode mode : {WaitMode::kAuto, WaitMode::kSpin, WaitMode::kYield}) {
    const MonotonicClock clock;
    const TimePoint began = clock.now();
    Looker looker(std::chrono::microseconds(1), mode);
    while (looker.goes_on()) continue;
    EXPECT_GE(clock.now() - began, std::chrono::microseconds(1));
  }
}

}  // namespace
}  // namespace heddle
