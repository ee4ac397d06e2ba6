#include "daemon/pinned_pool.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/fd.h"

namespace heddle::daemon {
namespace {

constexpr Bytes kSmallPiece{2 * kMiB}, kLargePiece{64 * kMiB};
constexpr DeviceId kPoolGpu{0}, kOtherPoolGpu{1};

struct PinnedPoolTest : ::testing::Test {
  static PinnedPool::Piece piece(uint64_t mapping, Bytes size, DeviceId gpu = kPoolGpu, int at = 0) {
    return {std::move(*create_memfd("piece", Bytes{1})), size, gpu, mapping, TimePoint{std::chrono::seconds(at)}};
  }
  static std::vector<uint64_t> mappings(const PinnedPool::Pieces& pieces) {
    std::vector<uint64_t> all;
    for (const PinnedPool::Piece& each : pieces) all.push_back(each.mapping);
    return all;
  }
  uint64_t take(Bytes size, DeviceId gpu = kPoolGpu) {
    const auto taken = pool.take(gpu, size);
    return taken ? taken->mapping : 0;
  }
  PinnedPool pool;
};

TEST_F(PinnedPoolTest, ServesTheNewestOfExactlyTheSize) {
  for (const uint64_t mapping : {1, 2}) pool.put(piece(mapping, kSmallPiece));
  EXPECT_EQ(take(kLargePiece), 0u);
  EXPECT_EQ(take(kSmallPiece), 2u);
  EXPECT_EQ(take(kSmallPiece), 1u);
  EXPECT_EQ(take(kSmallPiece), 0u);
}

TEST_F(PinnedPoolTest, ServesWhatTheSameGpusKeeperMade) {
  pool.put(piece(1, kSmallPiece, kOtherPoolGpu));
  EXPECT_EQ(take(kSmallPiece), 0u);
  EXPECT_EQ(take(kSmallPiece, kOtherPoolGpu), 1u);
}

TEST_F(PinnedPoolTest, GivesUpTheOldestUntilItIsSmallEnough) {
  pool.put(piece(1, kSmallPiece));
  pool.put(piece(2, kLargePiece, kOtherPoolGpu));
  pool.put(piece(3, kSmallPiece));
  EXPECT_TRUE(pool.shrink_to(kLargePiece + kSmallPiece + kSmallPiece).empty());
  EXPECT_EQ(mappings(pool.shrink_to(kSmallPiece)), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(pool.bytes(), kSmallPiece);
  EXPECT_EQ(mappings(pool.shrink_to(Bytes{})), std::vector<uint64_t>{3});
  EXPECT_EQ(pool.bytes(), Bytes{});
}

TEST_F(PinnedPoolTest, GivesUpWhatNobodyUsed) {
  EXPECT_FALSE(pool.oldest());
  for (const int at : {1, 2, 3}) pool.put(piece(static_cast<uint64_t>(at), kSmallPiece, kPoolGpu, at));
  EXPECT_EQ(pool.oldest(), TimePoint{std::chrono::seconds(1)});
  EXPECT_EQ(mappings(pool.give_up_unused(TimePoint{std::chrono::seconds(2)})), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(pool.oldest(), TimePoint{std::chrono::seconds(3)});
}

TEST_F(PinnedPoolTest, HasNoMorePiecesThanDescriptorsForThem) {
  for (uint64_t i = 0; i < PinnedPool::kMostPieces; ++i) EXPECT_TRUE(pool.put(piece(i + 1, kSmallPiece)).empty());
  EXPECT_EQ(mappings(pool.put(piece(1000, kSmallPiece))), std::vector<uint64_t>{1});
  EXPECT_EQ(pool.bytes(), Bytes{PinnedPool::kMostPieces * kSmallPiece.value});
}

}  // namespace
}  // namespace heddle::daemon
