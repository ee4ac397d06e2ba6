#include "device/software/model/slots.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/clock.h"
#include "device/software/model/test_model.h"

namespace heddle::software {
namespace {

constexpr SmShare kWholeSm{1, 8, 0, 0}, kHalfSm{1, 4, 0, 0}, kQuarterSm{1, 2, 0, 0};

TimePoint at(int64_t ms) {
  return TimePoint(std::chrono::milliseconds(ms));
}

// Two contexts in one process, taking turns at the lock.
class SlotsTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = *create_memfd("board", Board::bytes(small_model()));
    for (auto& board : boards_) {
      board.emplace(*Board::open(small_model(), memory_));
      ASSERT_TRUE(board->attach());
    }
  }
  void TearDown() override {
    for (auto& board : boards_) board->detach();
  }

  template <class Action>
  auto as(int client, Action action) {
    auto lock = boards_[client]->lock();
    Slots slots(*lock);
    return action(slots);
  }
  void request(int client, uint64_t launch, uint64_t blocks, SmShare need, TimePoint ready = at(1)) {
    ASSERT_TRUE(as(client, [&](Slots& slots) { return slots.request({launch, blocks, need, ready, false}); }));
  }
  std::vector<Placement> collect(int client) {
    return as(client, [](Slots& slots) { return slots.collect(); });
  }
  void release(int client, uint32_t slot, TimePoint when) {
    as(client, [&](Slots& slots) { slots.release(slot, when); });
  }

  Fd memory_;
  std::optional<Board> boards_[2];
};

TEST_F(SlotsTest, BlocksSpreadOverSms) {
  request(0, 1, 2, kHalfSm);
  auto placed = collect(0);
  ASSERT_EQ(placed.size(), 2u);
  EXPECT_NE(placed[0].sm, placed[1].sm);
  EXPECT_TRUE(collect(0).empty());
}

TEST_F(SlotsTest, NoMoreIsPlacedThanFits) {
  request(0, 1, 100, kHalfSm);
  EXPECT_EQ(collect(0).size(), 4u);
  EXPECT_TRUE(as(0, [](Slots& slots) { return slots.waiting(); }));
}

TEST_F(SlotsTest, RoomThatOneContextLeavesIsTakenByTheOther) {
  request(0, 1, 2, kWholeSm);
  request(1, 7, 1, kWholeSm);
  EXPECT_TRUE(collect(1).empty());
  auto mine = collect(0);
  release(0, mine[0].slot, at(5));
  auto theirs = collect(1);
  ASSERT_EQ(theirs.size(), 1u);
  EXPECT_EQ(theirs[0].launch, 7u);
  EXPECT_EQ(theirs[0].sm, mine[0].sm);
}

TEST_F(SlotsTest, WaitingBlockStartsWhenRoomWasMade) {
  request(0, 1, 2, kWholeSm, at(1));
  request(1, 7, 2, kWholeSm, at(2));
  for (const Placement& placement : collect(0)) release(0, placement.slot, at(5));
  for (const Placement& placement : collect(1)) EXPECT_EQ(placement.start, at(5));
}

TEST_F(SlotsTest, BlockThatHadRoomAllAlongStartsWhenItWasReady) {
  request(0, 1, 1, kHalfSm, at(1));
  release(0, collect(0)[0].slot, at(9));
  request(0, 2, 1, kHalfSm, at(6));
  EXPECT_EQ(collect(0)[0].start, at(6));
}

TEST_F(SlotsTest, LaunchesOfTwoContextsTakeTurns) {
  request(0, 1, 100, kWholeSm);
  auto held = collect(0);
  request(1, 7, 100, kWholeSm);
  int got[2] = {};
  std::vector<std::pair<int, uint32_t>> occupied;
  for (const Placement& placement : held) occupied.push_back({0, placement.slot});
  for (int round = 0; round < 20; ++round) {
    auto [client, slot] = occupied.front();
    occupied.erase(occupied.begin());
    release(client, slot, at(10 + round));
    for (int i : {0, 1}) {
      for (const Placement& placement : collect(i)) {
        occupied.push_back({i, placement.slot});
        ++got[i];
      }
    }
  }
  EXPECT_EQ(got[0], 10);
  EXPECT_EQ(got[1], 10);
}

TEST_F(SlotsTest, LaunchThatFitsOvertakesOneThatDoesNot) {
  request(0, 1, 2, kQuarterSm);
  collect(0);
  request(0, 2, 1, kWholeSm);
  request(1, 7, 1, kQuarterSm);
  EXPECT_EQ(collect(1).size(), 1u);
}

// Client 0 may have the first SM alone.
struct PartOfTheSmsTest : SlotsTest {
  void SetUp() override {
    SlotsTest::SetUp();
    boards_[0]->detach();
    ASSERT_TRUE(boards_[0]->attach(1));
  }
};

TEST_F(PartOfTheSmsTest, BlocksStayThere) {
  request(0, 1, 100, kQuarterSm);
  const auto placed = collect(0);
  EXPECT_EQ(placed.size(), 4u);
  for (const Placement& placement : placed) EXPECT_EQ(placement.sm, 0u);
  request(1, 7, 100, kQuarterSm);
  EXPECT_EQ(collect(1).size(), 4u) << "all of the other one";
}

TEST_F(PartOfTheSmsTest, WhatIsToBeThereTogetherIsAsWell) {
  ASSERT_TRUE(as(0, [](Slots& slots) { return slots.request({1, 2, kHalfSm, at(1), true}); }));
  EXPECT_EQ(collect(0).size(), 2u);
  ASSERT_TRUE(as(0, [](Slots& slots) { return slots.request({2, 1, kHalfSm, at(1), true}); }));
  EXPECT_TRUE(collect(0).empty());
}

// It is overtaken until the line is held up for it, where it may go.
TEST_F(PartOfTheSmsTest, OthersHaveTheOtherSmWhileSpaceIsKeptForIt) {
  request(1, 5, 1, kQuarterSm);  // on one of the SMs
  request(1, 6, 1, kQuarterSm);  // on the other
  collect(1);
  request(0, 1, 1, kWholeSm);
  for (uint32_t launch = 0; launch < 3 * kMostOvertaken; ++launch) {
    request(1, 10 + launch, 1, kQuarterSm, at(launch));
    const auto placed = collect(1);
    ASSERT_EQ(placed.size(), 1u) << launch;
    if (launch > kMostOvertaken + 4) {
      EXPECT_EQ(placed[0].sm, 1u) << launch;
    }
    release(1, placed[0].slot, at(launch + 1));
  }
}

// Small blocks of client 1 come and go, one at a time, until a large one of client 0 is placed.
class HeldLineTest : public SlotsTest {
 protected:
  void SetUp() override {
    SlotsTest::SetUp();
    request(0, 1, 2, kQuarterSm);
    for (const Placement& placement : collect(0)) occupied_.push_back({0, placement.slot});
    request(0, 2, 1, kWholeSm);
    request(1, 7, 1'000'000, kQuarterSm);
    take(1);
  }
  void take(int client) {
    for (const Placement& placement : collect(client)) {
      occupied_.push_back({client, placement.slot});
      last_[client] = placement;
    }
  }
  void release_the_oldest(TimePoint when) {
    auto [client, slot] = occupied_.front();
    occupied_.erase(occupied_.begin());
    release(client, slot, when);
  }
  // Ends as soon as the large block is placed, with what that let in still to be collected.
  bool goes_on() {
    for (int64_t step = 0; step < 1000 && !occupied_.empty(); ++step) {
      release_the_oldest(at(10 + step));
      take(0);
      if (last_[0].launch == 2) return true;
      take(1);
    }
    return false;
  }

  std::vector<std::pair<int, uint32_t>> occupied_;
  Placement last_[2];
};

TEST_F(HeldLineTest, LargeBlockIsNotOvertakenForEver) {
  EXPECT_TRUE(goes_on());
}

TEST_F(HeldLineTest, BlocksForWhichNoRoomWasKeptStartWhenTheLineGoesOn) {
  ASSERT_TRUE(goes_on());
  const auto let_in = collect(1);
  ASSERT_FALSE(let_in.empty());
  for (const Placement& placement : let_in) EXPECT_GE(placement.start, last_[0].start);
}

TEST_F(HeldLineTest, LineGoesOnWhenTheLaunchThatHoldsItUpIsWithdrawn) {
  constexpr uint32_t kNobody = ~0u;
  int64_t step = 0;
  do {
    last_[1].slot = kNobody;
    release_the_oldest(at(10 + step++));
    take(1);
  } while (last_[1].slot != kNobody);
  as(0, [&](Slots& slots) { slots.withdraw(2, at(5000)); });
  const auto let_in = collect(1);
  ASSERT_FALSE(let_in.empty());
  for (const Placement& placement : let_in) EXPECT_EQ(placement.start, at(5000));
}

TEST_F(SlotsTest, CooperativeLaunchWaitsUntilAllOfItFits) {
  request(0, 1, 1, kHalfSm);
  auto first = collect(0);
  EXPECT_TRUE(as(1, [](Slots& slots) { return slots.request({7, 4, kHalfSm, at(1), true}); }));
  EXPECT_TRUE(collect(1).empty());
  release(0, first[0].slot, at(2));
  EXPECT_EQ(collect(1).size(), 4u);
}

TEST_F(SlotsTest, WithdrawnLaunchGetsNothing) {
  request(0, 1, 2, kWholeSm);
  auto mine = collect(0);
  request(1, 7, 1, kWholeSm);
  as(1, [](Slots& slots) { slots.withdraw(7, at(2)); });
  release(0, mine[0].slot, at(5));
  EXPECT_TRUE(collect(1).empty());
}

TEST_F(SlotsTest, OthersSlotsCannotBeReleased) {
  request(0, 1, 2, kWholeSm);
  auto mine = collect(0);
  release(1, mine[0].slot, at(5));
  release(1, 1'000'000, at(5));
  request(1, 7, 1, kWholeSm);
  EXPECT_TRUE(collect(1).empty());
}

TEST_F(SlotsTest, LineHasRoomForSixteenLaunchesOfAContext) {
  for (uint64_t launch = 1; launch <= kWaitsPerClient; ++launch) request(0, launch, 100, kWholeSm);
  EXPECT_FALSE(as(0, [](Slots& slots) { return slots.request({99, 1, kWholeSm, at(1), false}); }));
}

}  // namespace
}  // namespace heddle::software
