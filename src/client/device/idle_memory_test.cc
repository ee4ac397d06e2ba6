#include "client/device/idle_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IdleMemoryTest : public ::testing::Test {
 protected:
  // What the worker does.
  bool worker_takes(uint64_t number) {
    for (auto& slot : header_.idle.segments) {
      uint64_t expected = number;
      if (slot.compare_exchange_strong(expected, number | protocol::IdleTable::kSegmentTaken)) return true;
    }
    return false;
  }

  protocol::RingHeader header_{};
  IdleMemory idle_{header_};
  Segment one_{.address = 0xa, .bytes = kSegmentBytes, .number = 1};
  Segment two_{.address = 0xb, .bytes = 2 * kSegmentBytes, .number = 2};
  Segment three_{.address = 0xc, .bytes = kSegmentBytes, .number = 3};
};

TEST_F(IdleMemoryTest, TheNewestOfTheSizeComesBackFirst) {
  for (Segment* segment : {&one_, &two_, &three_}) ASSERT_TRUE(idle_.offer(segment));
  EXPECT_EQ(idle_.bytes(), 4 * kSegmentBytes);
  EXPECT_EQ(idle_.take_fitting(3 * kSegmentBytes), nullptr);
  EXPECT_EQ(idle_.take_fitting(kSegmentBytes), &three_);
  EXPECT_EQ(idle_.take_oldest(), &one_);
  EXPECT_EQ(idle_.bytes(), 2 * kSegmentBytes);
  EXPECT_FALSE(worker_takes(1) || worker_takes(3));
  EXPECT_TRUE(worker_takes(2));
}

TEST_F(IdleMemoryTest, WhatTheWorkerHasTakenIsNotTakenTwiceAndItsSlotIsFreeAgain) {
  ASSERT_TRUE(idle_.offer(&one_));
  ASSERT_TRUE(worker_takes(1));
  EXPECT_EQ(idle_.take_fitting(kSegmentBytes), nullptr);
  EXPECT_FALSE(idle_.take(&one_));
  EXPECT_EQ(idle_.take_oldest(), nullptr);
  EXPECT_THAT(idle_.lost(), ElementsAre(&one_));
  EXPECT_THAT(idle_.lost(), IsEmpty());
  EXPECT_TRUE(idle_.empty());
  EXPECT_EQ(idle_.bytes(), 0u);
  EXPECT_EQ(header_.idle.segments[0].load(), 0u);
}

TEST_F(IdleMemoryTest, AFullTableRefuses) {
  std::vector<Segment> many(protocol::kMaxIdleSegments + 1);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i].number = i + 1;
    many[i].bytes = kSegmentBytes;
    EXPECT_EQ(idle_.offer(&many[i]), i < protocol::kMaxIdleSegments);
  }
}

}  // namespace
}  // namespace heddle::client
