#include "keeper/segment_pool.h"

#include <gtest/gtest.h>

#include "core/fd.h"

namespace heddle::keeper {
namespace {

constexpr Bytes kSmall{2 * kMiB}, kLarge{64 * kMiB};

struct SegmentPoolTest : testing::Test {
  // The number of the descriptor tells which piece it is.
  int put(Bytes size, bool cleared) {
    Fd memory = std::move(*create_memfd("piece", Bytes{1}));
    const int number = memory.get();
    pool.put({std::move(memory), size, cleared});
    return number;
  }
  int take(Bytes size) {
    taken.push_back(pool.take(size));
    return taken.back() ? taken.back()->memory.get() : -1;
  }
  SegmentPool pool;
  std::vector<std::optional<SegmentPool::Piece>> taken;  // stays open, so that no number comes twice
};

TEST_F(SegmentPoolTest, ServesExactlyTheSize) {
  const int small = put(kSmall, true);
  EXPECT_EQ(take(kLarge), -1);
  EXPECT_EQ(take(kSmall), small);
  EXPECT_EQ(take(kSmall), -1);
}

TEST_F(SegmentPoolTest, ServesTheNewestOfThoseThatAreCleared) {
  const int oldest = put(kSmall, true), newer = put(kSmall, true), used = put(kSmall, false);
  EXPECT_EQ(take(kSmall), newer);
  EXPECT_EQ(take(kSmall), oldest);
  EXPECT_EQ(take(kSmall), used);
  EXPECT_FALSE(taken.back()->cleared);
}

TEST_F(SegmentPoolTest, TheOldestIsClearedFirst) {
  put(kSmall, true);
  const int first = put(kSmall, false);
  put(kSmall, false);
  ASSERT_TRUE(pool.has_uncleared());
  EXPECT_EQ(pool.take_uncleared()->memory.get(), first);
  EXPECT_TRUE(pool.take_uncleared());
  EXPECT_FALSE(pool.has_uncleared());
  EXPECT_FALSE(pool.take_uncleared());
}

TEST_F(SegmentPoolTest, CountsItsBytes) {
  put(kSmall, true);
  put(kLarge, false);
  EXPECT_EQ(pool.bytes(), kSmall + kLarge);
  take(kSmall);
  EXPECT_EQ(pool.bytes(), kLarge);
}

TEST_F(SegmentPoolTest, LetsTheOldestGoUntilItIsEnough) {
  put(kSmall, false);
  put(kLarge, true);
  const int newest = put(kSmall, true);
  EXPECT_EQ(pool.release(Bytes{}), Bytes{});
  EXPECT_EQ(pool.release(kSmall + Bytes{1}), kSmall + kLarge);
  EXPECT_FALSE(pool.has_uncleared());
  EXPECT_EQ(take(kSmall), newest);
  EXPECT_EQ(pool.release(kLarge), Bytes{}) << "there is no more";
}

TEST_F(SegmentPoolTest, OnePieceTooManyLetsTheOldestGo) {
  put(kLarge, true);
  for (size_t i = 0; i < SegmentPool::kMostPieces; ++i) put(kSmall, true);
  EXPECT_EQ(take(kLarge), -1);
  EXPECT_EQ(pool.bytes().value, SegmentPool::kMostPieces * kSmall.value);
}

}  // namespace
}  // namespace heddle::keeper
