#include "daemon/segment_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "daemon/testing/fake_executor.h"

namespace heddle::daemon {
namespace {

using protocol::DeclareSegment;
using protocol::SegmentKind;

constexpr uint64_t kStep = 2 * kMiB;

class SegmentRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session_.window = protocol::Window{kBase, 64 * kStep, 16 * kStep};
    session_.devices.resize(1);
    auto ring = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
    session_.devices[0].ring = std::move(ring->second);
  }
  static DeclareSegment at(uint64_t number, uint64_t piece, uint64_t pieces) {
    return {0, number, kBase + piece * kStep, pieces * kStep};
  }
  Segment& add(const DeclareSegment& declared) {
    Segment segment;
    segment.number = declared.number;
    segment.address = declared.address;
    segment.bytes = Bytes{declared.bytes};
    session_.highest_segment = std::max(session_.highest_segment, declared.number);
    session_.by_address[declared.address] = declared.number;
    return session_.segments.emplace(declared.number, std::move(segment)).first->second;
  }
  Result<SegmentVerdict> check(const DeclareSegment& declared) {
    return check_segment(session_, declared, limits_, executor_);
  }

  static constexpr uint64_t kBase = 1ull << 40;
  Session session_;
  Limits limits_;
  testing::FakeExecutor executor_;
};

TEST_F(SegmentRulesTest, NeighboursDoNotOverlap) {
  add(at(1, 4, 4));
  EXPECT_EQ(*check(at(2, 0, 4)), SegmentVerdict::kNew);
  EXPECT_EQ(*check(at(2, 8, 4)), SegmentVerdict::kNew);
  EXPECT_FALSE(check(at(2, 7, 1)));
  EXPECT_FALSE(check(at(2, 3, 2)));
  EXPECT_FALSE(check(at(2, 0, 64)));
}

TEST_F(SegmentRulesTest, TheWindowsLastPieceIsInside) {
  EXPECT_EQ(*check(at(1, 63, 1)), SegmentVerdict::kNew);
  EXPECT_FALSE(check(at(1, 63, 2)));
  DeclareSegment host = at(1, 79, 1);
  host.kind = SegmentKind::kHost;
  EXPECT_EQ(*check(host), SegmentVerdict::kNew);
  host.bytes += kStep;
  EXPECT_FALSE(check(host));
}

TEST_F(SegmentRulesTest, OnlyKnownKindsPass) {
  DeclareSegment room = at(1, 0, 1);
  room.kind = SegmentKind::kRoom;
  EXPECT_EQ(*check(room), SegmentVerdict::kNew);
  room.kind = SegmentKind::kDriver;
  EXPECT_EQ(*check(room), SegmentVerdict::kNew);
  room.kind = SegmentKind{5};
  EXPECT_FALSE(check(room));
  room.kind = SegmentKind{0};
  EXPECT_FALSE(check(room));
}

TEST_F(SegmentRulesTest, OverASegmentThatAWorkerServesItMayBeOnItsWayBack) {
  Segment& segment = add(at(1, 0, 4));
  segment.state = Segment::State::kHeld;
  EXPECT_EQ(check(at(2, 0, 2)).error().code, ErrorCode::kProtocol);
  executor_.serves = true;
  EXPECT_EQ(*check(at(2, 0, 2)), SegmentVerdict::kAwaitsFree);
}

TEST_F(SegmentRulesTest, OnlyAResumedClientMayRepeatItself) {
  add(at(3, 0, 4));
  EXPECT_EQ(check(at(3, 0, 4)).error().code, ErrorCode::kProtocol);
  session_.resumed = true;
  EXPECT_EQ(*check(at(3, 0, 4)), SegmentVerdict::kKnown);
  EXPECT_EQ(*check(at(2, 40, 4)), SegmentVerdict::kKnown);  // it was given back already
  EXPECT_EQ(check(at(3, 0, 2)).error().code, ErrorCode::kProtocol);
}

// Its answer never came, so what heddled does not know of it was not granted, or not noted.
TEST_F(SegmentRulesTest, WhatAResumedClientAsksForAgainIsNewIfNobodyKnowsIt) {
  add(at(3, 0, 4));
  DeclareSegment asked = at(2, 40, 4), known = at(3, 0, 4), elsewhere = at(2, 2, 4);
  asked.request = known.request = elsewhere.request = 7;
  EXPECT_EQ(check(asked).error().code, ErrorCode::kProtocol);
  session_.resumed = true;
  EXPECT_EQ(*check(asked), SegmentVerdict::kNew);
  EXPECT_EQ(*check(known), SegmentVerdict::kKnown);
  EXPECT_EQ(check(elsewhere).error().code, ErrorCode::kProtocol);
}

TEST_F(SegmentRulesTest, NumbersBeginAtOne) {
  session_.resumed = true;
  DeclareSegment zero = at(0, 0, 1);
  zero.request = 7;
  EXPECT_EQ(check(zero).error().code, ErrorCode::kProtocol);
}

TEST_F(SegmentRulesTest, TheLimitIsAnErrorOfItsOwn) {
  limits_.segments_per_session = 1;
  add(at(1, 0, 1));
  EXPECT_EQ(*check(at(2, 1, 1)), SegmentVerdict::kNew) << "the first may be on its way back";
  add(at(2, 1, 1));
  EXPECT_EQ(check(at(3, 2, 1)).error().code, ErrorCode::kLimitExceeded);
}

TEST_F(SegmentRulesTest, AtTheLimitASegmentThatAWorkerServesMayBeOnItsWayBack) {
  limits_.segments_per_session = 1;
  add(at(1, 0, 1)).state = Segment::State::kHeld;
  add(at(2, 1, 1));
  executor_.serves = true;
  EXPECT_EQ(*check(at(3, 2, 1)), SegmentVerdict::kAwaitsFree);
  session_.segments.at(1).kind = SegmentKind::kHost;
  EXPECT_EQ(check(at(3, 2, 1)).error().code, ErrorCode::kLimitExceeded)
      << "pinned memory goes back over this connection";
}

protocol::CopyAcross copy(uint64_t to, uint64_t from, uint64_t width, uint64_t height = 1, uint64_t depth = 1,
                          uint64_t pitch = 0, uint64_t slice = 0) {
  return {0, {to, pitch, slice}, {from, pitch, slice}, width, height, depth};
}

TEST_F(SegmentRulesTest, CopiesLieInsideASegmentAtEachEnd) {
  add(at(1, 0, 2));
  add(at(2, 2, 2));
  add(at(3, 8, 1));
  const uint64_t first = kBase, second = kBase + 2 * kStep, third = kBase + 8 * kStep;
  const auto ends = check_copy(session_, copy(third + 8, first + kStep, kStep - 8));
  ASSERT_TRUE(ends) << ends.error().text;
  EXPECT_EQ(ends->to->number, 3u);
  EXPECT_EQ(ends->from->number, 1u);
  EXPECT_TRUE(check_copy(session_, copy(third, second, 1)));
  EXPECT_TRUE(check_copy(session_, copy(third, second, 64, 8, 4, 128, 1024)));
  for (const auto& wrong : {
           copy(third, second, kStep + 1),                     // longer than the destination
           copy(third, second - 1, 2),                         // over two segments
           copy(third + kStep, second, 1),                     // behind
           copy(kBase - 1, second, 1),                         // before all
           copy(third, kBase + 5 * kStep, 1),                  // between
           copy(third, second, 8, 1 + kStep / 64, 1, 64),      // the last row
           copy(third, second, 8, 1, 1 + kStep / 64, 0, 64),   // the last slice
           copy(third, second, ~0ull),                         // wraps
           copy(third, second, 8, ~0ull / 8, 1, 64),           // the product wraps
           copy(third, second, 8, 2, ~0ull / 8, 64, 128),      // the other product
           copy(third, second, 0), copy(third, second, 8, 0),  // nothing
           copy(third, second, 8, 1, 0),                       //
           copy(third, second, 8, 1000000000000, 1, 0),        // the same bytes again and again
           copy(third, second, 8, 2, 1000000000000, 8, 0),     //
       }) {
    const auto refused = check_copy(session_, wrong);
    ASSERT_FALSE(refused) << wrong.to.address << " " << wrong.width << " " << wrong.height << " " << wrong.depth;
    EXPECT_EQ(refused.error().code, ErrorCode::kProtocol);
  }
}

TEST_F(SegmentRulesTest, CopiesAreOfDeviceMemory) {
  add(at(1, 0, 1));
  add(at(2, 64, 1)).kind = SegmentKind::kHost;
  EXPECT_FALSE(check_copy(session_, copy(kBase, kBase + 64 * kStep, 8)));
  EXPECT_FALSE(check_copy(session_, copy(kBase + 64 * kStep, kBase, 8)));
}

// Whatever is accepted lies inside the window and beside everything else, by a bitmap's account.
TEST_F(SegmentRulesTest, RandomDeclarationsNeverOverlapOrLeaveTheWindow) {
  std::mt19937_64 random(11);
  std::vector<bool> taken(64);
  uint64_t number = 0;
  for (int round = 0; round < 20000; ++round) {
    const uint64_t piece = random() % 80, pieces = random() % 70;
    DeclareSegment declared = at(++number, piece, pieces);
    if (random() % 8 == 0) declared.bytes = random();
    const bool whole = declared.bytes % kStep == 0 && declared.bytes != 0 && declared.bytes / kStep <= 64;
    bool free = whole && piece + declared.bytes / kStep <= 64;
    for (uint64_t i = piece; free && i < piece + declared.bytes / kStep; ++i) free = !taken[i];
    const auto verdict = check(declared);
    ASSERT_EQ(verdict.has_value(), free) << piece << " " << declared.bytes;
    if (!free) continue;
    add(declared);
    for (uint64_t i = piece; i < piece + pieces; ++i) taken[i] = true;
    if (random() % 2 == 0) continue;
    session_.by_address.erase(declared.address);
    session_.segments.erase(declared.number);
    for (uint64_t i = piece; i < piece + pieces; ++i) taken[i] = false;
  }
}

}  // namespace
}  // namespace heddle::daemon
