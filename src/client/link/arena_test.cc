#include "client/link/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::client {
namespace {

constexpr uint64_t kBase = 1ull << 40;

TEST(Arena, LargeBuffersOwnAlignedSegments) {
  Arena arena(kBase, kGiB);
  const auto one = arena.allocate(kMiB, 0), two = arena.allocate(3 * kMiB, 0);
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->segment, two->segment);
  EXPECT_EQ(one->address % kSegmentBytes, 0u);
  EXPECT_EQ(two->segment->bytes, 4 * kMiB);
  EXPECT_EQ(arena.segment_bytes(), 6 * kMiB);
}

TEST(Arena, SmallBuffersShareASegment) {
  Arena arena(kBase, kGiB);
  const auto one = arena.allocate(1, 0), two = arena.allocate(1000, 0);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->segment, two->segment);
  EXPECT_FALSE(two->new_segment);
  EXPECT_EQ(two->address, one->address + kBufferAlign);
  EXPECT_EQ(arena.segment_bytes(), kSegmentBytes);
}

TEST(Arena, SmallBuffersMayOwnTheirSegmentsWhileThereAreFew) {
  SegmentCount count;
  Arena arena(kBase, kGiB, &count);
  arena.share_from(3);
  std::set<Segment*> segments;
  for (int i = 0; i < 6; ++i) {
    const uint64_t before = arena.segment_bytes(), adds = arena.would_add(1000, 0);
    segments.insert(arena.allocate(1000, 0)->segment);
    EXPECT_EQ(arena.segment_bytes() - before, adds);
  }
  EXPECT_EQ(segments.size(), 4u);  // three of their own, and one that three share
}

TEST(Arena, SmallBuffersThatDoNotFitTakeAnotherSegment) {
  Arena arena(kBase, kGiB);
  for (int i = 0; i < 2; ++i) ASSERT_FALSE(arena.allocate(900 * kKiB, 0)->new_segment != (i == 0));
  EXPECT_EQ(arena.would_add(900 * kKiB, 0), kSegmentBytes);
  EXPECT_EQ(arena.would_add(kKiB, 0), 0u);
  EXPECT_TRUE(arena.allocate(900 * kKiB, 0)->new_segment);
}

TEST(Arena, AnEmptySegmentIsOccupiedByBuffersOfEitherKind) {
  Arena arena(kBase, kGiB);
  const auto small = arena.allocate(900 * kKiB, 0);
  Segment* const segment = arena.release(small->address, 7);
  EXPECT_FALSE(arena.covers(segment->address, 1));
  EXPECT_FALSE(arena.occupy(segment, 3 * kMiB / 2).new_segment);
  EXPECT_TRUE(arena.covers(segment->address, kSegmentBytes));
  EXPECT_TRUE(arena.allocate(1000 * kKiB, 100)->new_segment) << "all of it is one buffer's";
  EXPECT_FALSE(arena.allocate(1000 * kKiB, 100)->new_segment);  // the new one is full
  arena.release(segment->address, 8);
  EXPECT_EQ(arena.occupy(segment, 100).address, segment->address);
  EXPECT_EQ(arena.allocate(900 * kKiB, 100)->address, segment->address + kBufferAlign);
  EXPECT_EQ(arena.allocate(900 * kKiB, 100)->segment, segment) << "no hole of before is left over";
  EXPECT_EQ(arena.segment_bytes(), 2 * kSegmentBytes);
}

TEST(Arena, FreedPlaceIsNotUsedAgainBeforeItIsCommitted) {
  Arena arena(kBase, kGiB);
  const uint64_t first = arena.allocate(kKiB, 0)->address;
  ASSERT_TRUE(arena.allocate(kKiB, 0));  // keeps the segment
  ASSERT_NE(arena.release(first, 10), nullptr);
  EXPECT_NE(arena.allocate(kKiB, 9)->address, first);
  EXPECT_EQ(arena.allocate(kKiB, 10)->address, first);
}

TEST(Arena, RetiredAddressesComeBackOnlyWhenFreshOnesRunOut) {
  Arena arena(kBase, 4 * kSegmentBytes);
  const auto first = *arena.allocate(kSegmentBytes, 0);
  ASSERT_EQ(arena.release(first.address, 5), first.segment);
  arena.retire(first.segment, 5);
  EXPECT_NE(arena.allocate(kSegmentBytes, 5)->address, first.address);
  ASSERT_TRUE(arena.allocate(kSegmentBytes, 5));
  ASSERT_TRUE(arena.allocate(kSegmentBytes, 5));
  EXPECT_FALSE(arena.allocate(kSegmentBytes, 4)) << "not committed yet";
  EXPECT_EQ(arena.allocate(kSegmentBytes, 5)->address, first.address);
}

TEST(Arena, NeighbouringRetiredRangesServeOneLargerBuffer) {
  Arena arena(kBase, 4 * kSegmentBytes);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(arena.allocate(kSegmentBytes, 0));
  for (uint64_t i : {1, 0}) {
    Segment* segment = arena.release(kBase + i * kSegmentBytes, 1);
    arena.retire(segment, 1);
  }
  EXPECT_EQ(arena.allocate(2 * kSegmentBytes, 1)->address, kBase);
}

TEST(Arena, OnlyStartsOfBuffersCanBeFreed) {
  Arena arena(kBase, kGiB);
  const uint64_t address = arena.allocate(kMiB, 0)->address;
  EXPECT_EQ(arena.release(address + 256, 0), nullptr);
  EXPECT_NE(arena.release(address, 0), nullptr);
  EXPECT_EQ(arena.release(address, 0), nullptr) << "twice";
}

TEST(Arena, KnowsWhatABufferCovers) {
  Arena arena(kBase, kGiB);
  const uint64_t address = arena.allocate(3 * kMiB, 0)->address;
  EXPECT_EQ(arena.buffer_at(address + 3 * kMiB - 1)->address, address);
  EXPECT_EQ(arena.buffer_at(address + 3 * kMiB), nullptr);
  EXPECT_TRUE(arena.covers(address, 4 * kMiB)) << "the whole segment is mapped";
  EXPECT_FALSE(arena.covers(address + 1, 4 * kMiB));
  EXPECT_FALSE(arena.covers(address, ~0ull));
}

TEST(Arena, ReservedAddressesHaveMemoryMoreThanOnce) {
  Arena arena(kBase, 2 * kSegmentBytes);
  const uint64_t address = *arena.reserve(kSegmentBytes, 0);
  EXPECT_EQ(arena.segment_bytes(), 0u);
  EXPECT_FALSE(arena.covers(address, 1));
  EXPECT_NE(arena.allocate(kSegmentBytes, 0)->address, address);
  for (uint64_t sequence : {5, 9}) {
    ASSERT_TRUE(arena.can_back(address, sequence));
    const auto place = arena.back(address);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->address, address);
    EXPECT_TRUE(arena.covers(address, kSegmentBytes));
    ASSERT_EQ(arena.release(address, sequence), place->segment);
    EXPECT_FALSE(arena.can_back(address, sequence)) << "the old segment is still there";
    arena.retire(place->segment, sequence);
    EXPECT_FALSE(arena.can_back(address, sequence - 1)) << "not committed yet";
  }
  EXPECT_FALSE(arena.allocate(kSegmentBytes, 9)) << "reserved";
  arena.unreserve(address);
  EXPECT_FALSE(arena.allocate(kSegmentBytes, 8));
  EXPECT_EQ(arena.allocate(kSegmentBytes, 9)->address, address);
}

TEST(Arena, TheSmallestHoleThatHasRoomIsTaken) {
  Arena arena(kBase, kGiB);
  const uint64_t large = arena.allocate(800 * kKiB, 0)->address, between = arena.allocate(kKiB, 0)->address,
                 small = arena.allocate(100 * kKiB, 0)->address;
  ASSERT_TRUE(arena.allocate(kKiB, 0));
  arena.release(large, 1);
  arena.release(small, 1);
  EXPECT_EQ(arena.allocate(90 * kKiB, 1)->address, small);
  EXPECT_EQ(arena.allocate(800 * kKiB, 1)->address, large);
  arena.release(large, 2);
  arena.release(small, 2);
  arena.release(between, 2);
  EXPECT_EQ(arena.allocate(901 * kKiB, 2)->address, large) << "three holes are one";
}

TEST(Arena, AnEmptySegmentTakesNoFurtherBuffers) {
  Arena arena(kBase, kGiB);
  const auto only = *arena.allocate(kKiB, 0);
  ASSERT_EQ(arena.release(only.address, 1), only.segment);
  EXPECT_EQ(arena.would_add(kKiB, 1), kSegmentBytes);
  EXPECT_NE(arena.allocate(kKiB, 1)->segment, only.segment);
}

// Of the default limit, 4096.
TEST(Arena, AHundredThousandBuffersOfOneMiBShareFewerSegmentsThanTheLimit) {
  SegmentCount count;
  count.limit(4096);
  Arena arena(kBase, 512 * kGiB, &count);
  std::vector<uint64_t> buffers;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t before = arena.segment_bytes(), adds = arena.would_add(kMiB, 0);
    const auto place = arena.allocate(kMiB, 0);
    ASSERT_TRUE(place) << i;
    ASSERT_EQ(arena.segment_bytes() - before, adds);
    ASSERT_EQ(place->new_segment, adds != 0);
    buffers.push_back(place->address);
  }
  EXPECT_LT(count.count(), 3'500u);
  EXPECT_LT(arena.segment_bytes(), 100'000 * kMiB + kGiB) << "hardly more than they need";
  std::sort(buffers.begin(), buffers.end());
  for (size_t i = 1; i < buffers.size(); ++i) ASSERT_GE(buffers[i], buffers[i - 1] + kMiB);
  for (const uint64_t address : buffers) {
    Segment* const segment = arena.release(address, 1);
    ASSERT_NE(segment, nullptr);
    if (segment->buffers == 0) arena.retire(segment, 1);
  }
  EXPECT_EQ(count.count(), 0u);
  EXPECT_EQ(arena.segment_bytes(), 0u);
  EXPECT_EQ(arena.allocate(kMiB, 1)->segment->bytes, kSegmentBytes) << "small again";
}

TEST(Arena, ASharedSegmentIsNoLargerThanWhatIsLeftIfTheBufferFits) {
  SegmentCount count;
  count.limit(64);
  Arena arena(kBase, kGiB, &count);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(arena.allocate(2 * kMiB, 0));
  EXPECT_EQ(count.doublings(), 2u);
  EXPECT_EQ(arena.would_add(kMiB, 0), 8 * kMiB);
  EXPECT_EQ(arena.would_add(kMiB, 0, 5 * kMiB), 4 * kMiB);
  EXPECT_EQ(arena.would_add(3 * kMiB, 0, kMiB), 4 * kMiB) << "what it needs, for the budget to refuse";
  EXPECT_EQ(arena.would_add(4 * kMiB, 0, 5 * kMiB), 4 * kMiB) << "large ones own theirs";
  EXPECT_EQ(arena.allocate_alone(2 * kMiB, 0)->segment->bytes, 2 * kMiB);
  const auto place = arena.allocate(kMiB, 0, 0, 5 * kMiB);
  EXPECT_EQ(place->segment->bytes, 4 * kMiB);
  EXPECT_EQ(arena.allocate(3 * kMiB, 0)->segment, place->segment);
}

TEST(Arena, NoMoreSegmentsThanTheLimitOverAllArenas) {
  SegmentCount count;
  count.limit(3);
  Arena one(kBase, kGiB, &count), two(kBase + kGiB, kGiB, &count);
  const uint64_t reserved = *two.reserve(kSegmentBytes, 0);
  const auto first = *one.allocate(kGiB / 4, 0);
  ASSERT_TRUE(two.allocate(kGiB / 4, 0));
  ASSERT_TRUE(two.back(reserved));
  EXPECT_TRUE(count.is_full());
  EXPECT_FALSE(one.allocate(kGiB / 4, 0));
  EXPECT_FALSE(two.back(*two.reserve(kSegmentBytes, 0)));
  one.retire(one.release(first.address, 1), 1);
  EXPECT_TRUE(two.allocate(kGiB / 4, 1));
}

struct ArenaWithTable : testing::Test {
  static constexpr Bytes kTable{protocol::BufferTable::kBytes};
  using Extent = protocol::BufferTable::Extent;
  ArenaWithTable() : memory(std::move(*map_shared(*create_memfd("table", kTable), kTable))) {}
  // What a worker finds at the address.
  std::optional<Extent> found(const Segment* segment, uint64_t address) const {
    return table.at_or_before({segment->address, segment->address + segment->bytes}, address);
  }
  static Extent extent(uint64_t address, uint64_t bytes) { return {address, address + round_up(bytes, kBufferAlign)}; }

  Mapping memory;
  protocol::BufferTable table{{static_cast<char*>(memory.data()), memory.size()}, kBase};
  SegmentCount count;
  Arena arena{kBase, kGiB, &count, table};
};

TEST_F(ArenaWithTable, TellsWhereBuffersLie) {
  const auto one = *arena.allocate(100, 0), two = *arena.allocate(kKiB, 0), three = *arena.allocate(900 * kKiB, 0);
  const auto large = *arena.allocate(3 * kMiB + 1, 0), alone = *arena.allocate_alone(4 * kMiB, 0);
  EXPECT_EQ(found(one.segment, one.address), extent(one.address, 100));
  EXPECT_EQ(found(one.segment, two.address + 1000), extent(two.address, kKiB));
  EXPECT_EQ(found(one.segment, three.address), extent(three.address, 900 * kKiB));
  EXPECT_EQ(found(large.segment, large.address), extent(large.address, 3 * kMiB + 1));
  EXPECT_EQ(found(alone.segment, alone.address), extent(alone.address, 4 * kMiB));
}

TEST_F(ArenaWithTable, ASmallBufferThatEndsAtTheAlignmentHasAGapBehindIt) {
  const auto one = *arena.allocate(kKiB, 0), two = *arena.allocate(kKiB, 0);
  EXPECT_GT(two.address, one.address + kKiB);
  EXPECT_EQ(found(one.segment, one.address), extent(one.address, kKiB)) << "which is nobody's";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(arena.allocate(512 * kKiB, 0)->new_segment, i == 3) << "large ones have none";
}

TEST_F(ArenaWithTable, AFreedBufferStaysUntilItsPlaceMayBeAnothers) {
  const auto first = *arena.allocate(kKiB, 0);
  ASSERT_TRUE(arena.allocate(kKiB, 0));
  arena.release(first.address, 10);
  ASSERT_TRUE(arena.allocate(64, 9));
  EXPECT_EQ(found(first.segment, first.address), extent(first.address, kKiB)) << "work that is not committed knows it";
  EXPECT_EQ(arena.allocate(100, 10)->address, first.address);
  EXPECT_EQ(found(first.segment, first.address), extent(first.address, 100));
}

TEST_F(ArenaWithTable, ASegmentThatGoesIsUnknown) {
  const auto only = *arena.allocate(kKiB, 0);
  const Extent whole{only.segment->address, only.segment->address + kSegmentBytes};
  Segment* const segment = arena.release(only.address, 5);
  EXPECT_EQ(found(segment, only.address), extent(only.address, kKiB));
  arena.retire(segment, 5);
  EXPECT_EQ(table.at_or_before(whole, whole.begin), whole);
}

TEST_F(ArenaWithTable, AnEmptySegmentIsTakenByBuffersOfEitherKind) {
  const auto small = *arena.allocate(900 * kKiB, 0);
  Segment* const segment = arena.release(small.address, 7);
  arena.occupy(segment, 3 * kMiB / 2);
  EXPECT_EQ(found(segment, segment->address), extent(segment->address, 3 * kMiB / 2));
  arena.release(segment->address, 8);
  arena.occupy(segment, 100);
  EXPECT_EQ(found(segment, segment->address + kMiB), extent(segment->address, 100)) << "nothing of before is left";
  const auto next = *arena.allocate(kKiB, 100);
  EXPECT_EQ(found(segment, next.address), extent(next.address, kKiB));
}

TEST_F(ArenaWithTable, ReservedAddressesAreOneBuffers) {
  const uint64_t address = *arena.reserve(kSegmentBytes, 0);
  const auto place = *arena.back(address);
  EXPECT_EQ(found(place.segment, address), extent(address, kSegmentBytes));
}

TEST(Arena, MoreThanTheWindowIsRefused) {
  Arena arena(kBase, kSegmentBytes);
  EXPECT_FALSE(arena.allocate(~0ull, 0));
  EXPECT_FALSE(arena.allocate(2 * kSegmentBytes, 0));
}

}  // namespace
}  // namespace heddle::client
