#include "worker/in_flight.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

constexpr Duration kMostInFlight{1000};
constexpr WorkKind kShort{1, 1}, kLong{2, 1}, kUnknown{3, 1};

struct InFlightTest : ::testing::Test {
  InFlightTest() {
    learn(kShort, Duration(100));
    learn(kLong, Duration(5000));
  }
  void learn(const WorkKind& kind, Duration took) {
    hand_over(kind, 0);
    done(sequence, took);
    in_flight.take_awaited();
  }
  void done(uint64_t which, Duration took) {
    const InFlight::Done one{which, took};
    in_flight.done(std::span(&one, 1));
  }
  uint64_t hand_over(const WorkKind& kind, uint32_t stream) {
    in_flight.hand_over(++sequence, stream, kind, kMostInFlight);
    return sequence;
  }
  uint64_t hold(const WorkKind& kind, uint32_t stream, std::vector<HeldBy> by) {
    in_flight.hand_over(++sequence, stream, kind, kMostInFlight, std::move(by));
    return sequence;
  }
  // How many of that kind it takes, one after the other.
  size_t fill(const WorkKind& kind, uint32_t stream, bool wanted) {
    size_t count = 0;
    for (; count < 1000 && in_flight.admits(kind, {stream, kMostInFlight, wanted}); ++count) hand_over(kind, stream);
    return count;
  }
  uint64_t sequence = 0;
  InFlight in_flight;
};

TEST_F(InFlightTest, ShortWorkFillsTheWindow) {
  EXPECT_EQ(fill(kShort, 0, true), 10u);
}

TEST_F(InFlightTest, TwoAreInFlightHoweverLongTheyTake) {
  EXPECT_EQ(fill(kLong, 0, true), 2u);
}

TEST_F(InFlightTest, WhatWasNeverSeenFillsTheWindow) {
  EXPECT_EQ(fill(kUnknown, 0, true), 2u);
  EXPECT_FALSE(in_flight.admits(kShort, {0, kMostInFlight, true}));
}

TEST_F(InFlightTest, WithoutAWindowThereIsNoBound) {
  for (int i = 0; i < 100; ++i) hand_over(kLong, 0);
  EXPECT_TRUE(in_flight.admits(kLong, {0, Duration::zero(), true}));
}

TEST_F(InFlightTest, EachOfSeveralStreamsHasItsNextFew) {
  hand_over(kLong, 1);
  hand_over(kLong, 2);
  EXPECT_EQ(fill(kLong, 0, true), 3 * InFlight::kLeastOfEach - 2);
}

TEST_F(InFlightTest, WhileNobodyWaitsEachStreamHasMore) {
  EXPECT_EQ(fill(kShort, 1, false), 10u * InFlight::kAlone);
  EXPECT_TRUE(in_flight.admits(kShort, {2, kMostInFlight, false}));
  EXPECT_FALSE(in_flight.admits(kShort, {2, kMostInFlight, true}));
}

// Otherwise the device would say at the end of all of it only, and run dry.
TEST_F(InFlightTest, TheDeviceIsAskedForTheEndOfEachQuarterOfTheWindow) {
  const auto due = [this] { return in_flight.take_fence_due(kMostInFlight, true); };
  due();
  hand_over(kShort, 0);
  hand_over(kShort, 0);
  EXPECT_FALSE(due());
  hand_over(kShort, 1);
  EXPECT_TRUE(due());
  EXPECT_FALSE(due());
  hand_over(kLong, 0);
  EXPECT_FALSE(in_flight.take_fence_due(kMostInFlight, false)) << "alone there may be more";
  EXPECT_TRUE(due());
  EXPECT_FALSE(in_flight.take_fence_due(Duration::zero(), true)) << "no window, no bound";
}

TEST_F(InFlightTest, AStreamHasYetMoreWhereOthersFollowUnlessSomebodyWaits) {
  ASSERT_EQ(fill(kShort, 1, false), 10u * InFlight::kAlone);
  EXPECT_TRUE(in_flight.admits(kShort, {1, kMostInFlight, false, false, true}));
  EXPECT_FALSE(in_flight.admits(kShort, {1, kMostInFlight, true, false, true}));
}

TEST_F(InFlightTest, WhoWasRefusedIsWokenWhenSomethingEnds) {
  hand_over(kLong, 0);
  const uint64_t second = hand_over(kLong, 0);
  EXPECT_FALSE(in_flight.take_awaited());
  EXPECT_FALSE(in_flight.admits(kLong, {0, kMostInFlight, true}));
  EXPECT_FALSE(in_flight.take_awaited()) << "nothing has ended";
  done(second, Duration(1));
  EXPECT_TRUE(in_flight.take_awaited());
  EXPECT_FALSE(in_flight.take_awaited());
  EXPECT_TRUE(in_flight.admits(kLong, {0, kMostInFlight, true}));
}

TEST_F(InFlightTest, WhoWasRefusedIsWokenOnceHalfOfTheWindowIsFree) {
  ASSERT_EQ(fill(kShort, 0, true), 10u);
  const uint64_t first = sequence - 9;
  for (uint64_t i = 0; i < 4; ++i) done(first + i, Duration(100));
  EXPECT_FALSE(in_flight.take_awaited());
  done(first + 4, Duration(100));
  EXPECT_TRUE(in_flight.take_awaited());
}

TEST_F(InFlightTest, WhoWaitsForTheEndIsWokenThen) {
  const uint64_t first = hand_over(kShort, 0), second = hand_over(kShort, 0);
  EXPECT_FALSE(in_flight.drained());
  done(first, Duration(100));
  EXPECT_FALSE(in_flight.take_awaited());
  done(second, Duration(100));
  EXPECT_TRUE(in_flight.take_awaited());
}

TEST_F(InFlightTest, IsDrainedButForWhatIsHeldInWhateverOrderWorkEnds) {
  const uint64_t first = hand_over(kShort, 1), second = hand_over(kShort, 2), third = hold(kShort, 3, {{3, 1}});
  done(second, Duration(1));
  EXPECT_FALSE(in_flight.drained());
  done(first, Duration(1));
  EXPECT_TRUE(in_flight.drained());
  EXPECT_TRUE(in_flight.any());
  in_flight.take_back(third);
  EXPECT_TRUE(in_flight.drained());
  EXPECT_FALSE(in_flight.any());
}

// As a host call may wait for what its program does on another stream.
TEST_F(InFlightTest, WhatIsHeldTakesNoRoomFromWhatRuns) {
  for (int i = 0; i < 3; ++i) hold(kUnknown, 0, {{0, 1}});
  EXPECT_EQ(fill(kShort, 2, true), 10u);
}

TEST_F(InFlightTest, OfEachStreamAWindowIsHeldAndMoreWhereOthersFollow) {
  size_t count = 0;
  const auto fill_held = [&](bool wanted, bool others_follow) {
    const InFlight::Room room{1, kMostInFlight, wanted, true, others_follow};
    for (; count < 10'000 && in_flight.admits(kShort, room); ++count) hold(kShort, 1, {{1, 1}});
    return count;
  };
  EXPECT_EQ(fill_held(true, false), 10u);
  EXPECT_EQ(fill_held(true, true), 10u * InFlight::kAlone);
  EXPECT_EQ(fill_held(false, false), 10u * InFlight::kAlone);
  EXPECT_EQ(fill_held(false, true), 10u * InFlight::kAhead);
  EXPECT_TRUE(in_flight.admits(kLong, {2, kMostInFlight, true, true})) << "one, however long it takes";
}

TEST_F(InFlightTest, WhatWasHeldRunsOnceAllItsHostCallsHaveReturned) {
  const uint64_t held = hold(kLong, 1, {{1, 10}, {2, 20}});
  in_flight.release({1, 10});
  in_flight.release({2, 19});
  EXPECT_TRUE(in_flight.drained());
  in_flight.release({2, 20});
  EXPECT_FALSE(in_flight.drained());
  EXPECT_FALSE(in_flight.take_awaited());
  done(held, Duration(1));
  EXPECT_TRUE(in_flight.take_awaited());
}

TEST(KernelTimes, TheLongestOfTheLatestEightCounts) {
  KernelTimes times;
  EXPECT_FALSE(times.estimate(kShort));
  times.add(kShort, Duration(900));
  for (int i = 0; i < 7; ++i) times.add(kShort, Duration(100));
  EXPECT_EQ(times.estimate(kShort), Duration(900));
  times.add(kShort, Duration(50));
  EXPECT_EQ(times.estimate(kShort), Duration(100));
  EXPECT_FALSE(times.estimate(kLong));
}

TEST(KernelTimes, AProgramThatLaunchesEverNewKernelsTakesNoMoreMemory) {
  KernelTimes times;
  for (uint64_t i = 0; i < 3 * KernelTimes::kMostKinds; ++i) times.add({i, 0}, Duration(1));
  EXPECT_TRUE(times.estimate({3 * KernelTimes::kMostKinds - 1, 0}));
  EXPECT_FALSE(times.estimate({0, 0}));
}

}  // namespace
}  // namespace heddle::worker
