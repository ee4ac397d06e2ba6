#include "worker/busy_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle::worker {
namespace {

TimePoint at(int64_t time) {
  return TimePoint(Duration(time));
}

struct BusyTimeTest : ::testing::Test {
  void add(int64_t began, int64_t ended) { busy.add(at(began), at(ended)); }
  int64_t total() const { return busy.total().count(); }
  BusyTime busy{at(0)};
};

TEST_F(BusyTimeTest, NothingIsNothing) {
  EXPECT_EQ(total(), 0);
  add(5, 5);
  add(9, 7);
  EXPECT_EQ(total(), 0);
}

TEST_F(BusyTimeTest, GapsDoNotCount) {
  add(10, 20);
  add(30, 40);
  EXPECT_EQ(total(), 20);
  EXPECT_EQ(busy.end(), at(40));
}

//  ====
//    ====
TEST_F(BusyTimeTest, WhatOverlapsCountsOnce) {
  add(10, 20);
  add(15, 30);
  EXPECT_EQ(total(), 20);
}

TEST_F(BusyTimeTest, WhatLiesInsideCountsNotAtAll) {
  add(10, 50);
  add(20, 30);
  add(10, 50);
  add(40, 50);
  EXPECT_EQ(total(), 40);
}

//    ==  ==   ==     come first, with the gaps between them
//  ==============    ends behind all of them
TEST_F(BusyTimeTest, ALongOneThatEndsLastFillsTheGaps) {
  add(20, 25);
  add(30, 35);
  add(45, 50);
  add(10, 60);
  EXPECT_EQ(total(), 50);
}

//    ==   ====  ==
//     =====          comes last, and touches two
TEST_F(BusyTimeTest, EndsMayComeOutOfOrder) {
  add(70, 80);
  add(40, 60);
  add(10, 20);
  EXPECT_EQ(total(), 40);
  add(15, 45);
  EXPECT_EQ(total(), 60);
  add(20, 30);
  EXPECT_EQ(total(), 60);
}

TEST_F(BusyTimeTest, NeighboursJoin) {
  for (int64_t time = 0; time < 10'000; time += 10) add(time, time + 10);
  EXPECT_EQ(total(), 10'000);
  add(0, 10'000);
  EXPECT_EQ(total(), 10'000);
}

TEST_F(BusyTimeTest, NothingBeforeTheBeginningCounts) {
  BusyTime later(at(100));
  later.add(at(50), at(90));
  later.add(at(80), at(120));
  EXPECT_EQ(later.total().count(), 20);
}

// With more gaps than it remembers it counts too little, never too much.
TEST_F(BusyTimeTest, OfForgottenGapsNothingCounts) {
  const auto count = static_cast<int64_t>(4 * BusyTime::kRemembered);
  for (int64_t i = 0; i < count; ++i) add(10 * i, 10 * i + 5);
  EXPECT_EQ(total(), 5 * count);
  add(0, 10 * count);
  EXPECT_GT(total(), 5 * count);
  EXPECT_LT(total(), 10 * count);
  const int64_t before = total();
  add(0, 10 * count);
  EXPECT_EQ(total(), before);
}

// Against a set of moments, as streams that run side by side end.
TEST_F(BusyTimeTest, AgreesWithCountingMoments) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    BusyTime measured(at(0));
    std::vector<bool> moments(2000);
    for (int64_t i = 0; i < 100; ++i) {
      const auto end = static_cast<int64_t>(random() % 200) + 18 * i;
      const int64_t begin = std::max<int64_t>(0, end - static_cast<int64_t>(random() % (i % 10 == 0 ? 400 : 20)));
      measured.add(at(begin), at(end));
      for (int64_t moment = begin; moment < end; ++moment) moments[static_cast<size_t>(moment)] = true;
    }
    EXPECT_EQ(measured.total().count(), std::count(moments.begin(), moments.end(), true));
  }
}

}  // namespace
}  // namespace heddle::worker
