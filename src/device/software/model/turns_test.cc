#include "device/software/model/turns.h"

#include <gtest/gtest.h>

#include <optional>

#include "device/software/model/test_model.h"

namespace heddle::software {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(2);

TimePoint at(int64_t ms) {
  return TimePoint(std::chrono::milliseconds(ms));
}

class TurnsTest : public testing::Test {
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
    Turns turns(*lock, kSlice);
    return action(turns);
  }
  void want(int client, TimePoint now) {
    as(client, [&](Turns& turns) { turns.want(now, now); });
  }
  TimePoint device_time(int client, TimePoint now) {
    return as(client, [&](Turns& turns) {
      turns.rotate(now);
      return turns.device_time(now);
    });
  }

  Fd memory_;
  std::optional<Board> boards_[2];
};

TEST_F(TurnsTest, LoneContextKeepsTheDevice) {
  want(0, at(100));
  EXPECT_EQ(device_time(0, at(150)), at(50));
  EXPECT_FALSE(as(0, [](Turns& turns) { return turns.next_rotation(); }));
}

TEST_F(TurnsTest, TwoContextsHaveHalfEach) {
  want(0, at(100));
  want(1, at(100));
  EXPECT_EQ(device_time(0, at(140)), at(20));
  EXPECT_EQ(device_time(1, at(140)), at(20));
}

TEST_F(TurnsTest, RotationLosesNoTimeHoweverLateItComes) {
  want(0, at(100));
  want(1, at(100));
  for (int64_t ms = 103; ms < 200; ms += 7) device_time(ms % 2, at(ms));
  EXPECT_EQ(device_time(0, at(200)) + (device_time(1, at(200)) - at(0)), at(100));
  EXPECT_EQ(device_time(0, at(200)), at(50));
}

TEST_F(TurnsTest, DeviceTimeStandsStillBetweenTurns) {
  want(0, at(100));
  want(1, at(100));
  EXPECT_EQ(device_time(1, at(101)), at(0));
  EXPECT_EQ(device_time(0, at(102)), at(2));
  EXPECT_EQ(device_time(0, at(103)), at(2));
}

TEST_F(TurnsTest, NewcomerWaitsForTheEndOfTheRunningSlice) {
  want(0, at(100));
  want(1, at(105));
  EXPECT_EQ(as(0, [](Turns& turns) { return *turns.next_rotation(); }), at(106));
}

TEST_F(TurnsTest, DeviceGoesOnAtOnceWhenItIsGivenUp) {
  want(0, at(100));
  want(1, at(100));
  as(0, [](Turns& turns) { turns.give_up(at(101), at(101)); });
  EXPECT_EQ(device_time(1, at(111)), at(10));
  EXPECT_EQ(device_time(0, at(111)), at(1));
}

TEST_F(TurnsTest, TurnBeginsWhenItWasWantedHoweverLateThatIsNoticed) {
  as(0, [](Turns& turns) { turns.want(at(100), at(103)); });
  EXPECT_EQ(device_time(0, at(110)), at(10));
}

TEST_F(TurnsTest, TurnFollowsTheOneBeforeWithoutAGap) {
  want(0, at(100));
  want(1, at(100));
  as(0, [](Turns& turns) { turns.give_up(at(101), at(104)); });
  EXPECT_EQ(device_time(1, at(111)), at(10));
}

}  // namespace
}  // namespace heddle::software
