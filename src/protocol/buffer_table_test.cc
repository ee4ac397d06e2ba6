#include "protocol/buffer_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <random>
#include <thread>

#include "core/fd.h"

namespace heddle::protocol {
namespace {

using Extent = BufferTable::Extent;

constexpr uint64_t kBase = 1ull << 41, kUnit = BufferTable::kUnit, kStep = BufferTable::kStep;
constexpr Extent kSegment{kBase + kStep, kBase + 2 * kStep};

struct BufferTableTest : testing::Test {
  void SetUp() override {
    auto fd = create_memfd("table", Bytes{BufferTable::kBytes});
    ASSERT_TRUE(fd);
    auto mapping = map_shared(*fd, Bytes{BufferTable::kBytes});
    ASSERT_TRUE(mapping);
    memory = std::move(*mapping);
    table = BufferTable({static_cast<char*>(memory.data()), memory.size()}, kBase);
  }
  uint64_t* words() { return static_cast<uint64_t*>(memory.data()); }
  // What a reader finds at and around an address is within the segment, and ends.
  static void is_sound(const BufferTable& table, Extent segment, uint64_t address) {
    const auto before = table.at_or_before(segment, address), behind = table.behind(segment, address);
    for (const auto& each : {before, behind}) {
      if (!each) continue;
      ASSERT_LE(segment.begin, each->begin);
      ASSERT_LT(each->begin, each->end);
      ASSERT_LE(each->end, segment.end);
    }
    ASSERT_TRUE(!before || before->begin <= address);
    ASSERT_TRUE(!behind || behind->begin > address);
  }

  Mapping memory;
  BufferTable table;
};

TEST_F(BufferTableTest, OfAnUnknownSegmentAllCounts) {
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.begin + 1000), kSegment);
  EXPECT_EQ(table.behind(kSegment, kSegment.begin - 1), kSegment);
  EXPECT_FALSE(table.behind(kSegment, kSegment.begin));
  EXPECT_FALSE(table.at_or_before(kSegment, kSegment.begin - 1));
  EXPECT_EQ(BufferTable().at_or_before(kSegment, kSegment.begin), kSegment) << "no table";
}

TEST_F(BufferTableTest, ASegmentMayHaveOneBuffer) {
  table.own(kSegment.begin, kMiB + 1);
  const Extent buffer{kSegment.begin, kSegment.begin + kMiB + kUnit};
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.begin), buffer);
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.end - 1), buffer) << "behind it";
  table.forget(kSegment.begin);
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.begin), kSegment);
}

TEST_F(BufferTableTest, BuffersShareASegment) {
  table.share(kSegment);
  EXPECT_FALSE(table.at_or_before(kSegment, kSegment.end - 1));
  EXPECT_FALSE(table.behind(kSegment, kSegment.begin - 1));
  const Extent first{kSegment.begin, kSegment.begin + 2 * kUnit}, second{first.end, first.end + 100 * kUnit},
      last{kSegment.end - kUnit, kSegment.end};
  table.add(last.begin, 1);
  table.add(first.begin, kUnit + 1);
  table.add(second.begin, 100 * kUnit);
  for (const Extent& each : {first, second, last}) {
    EXPECT_EQ(table.at_or_before(kSegment, each.begin), each);
    EXPECT_EQ(table.at_or_before(kSegment, each.end - 1), each);
    EXPECT_EQ(table.behind(kSegment, each.begin - 1), each);
  }
  EXPECT_EQ(table.at_or_before(kSegment, last.begin - 1), second) << "between";
  EXPECT_EQ(table.behind(kSegment, second.begin), last);
  EXPECT_FALSE(table.behind(kSegment, last.begin));
  table.remove(second.begin);
  EXPECT_EQ(table.at_or_before(kSegment, second.begin), first);
  EXPECT_EQ(table.behind(kSegment, first.begin), last);
  table.share(kSegment);
  EXPECT_FALSE(table.behind(kSegment, kSegment.begin - 1)) << "nothing of before is left";
}

TEST_F(BufferTableTest, ABufferMayLieAcrossSteps) {
  const Extent large{kSegment.begin, kSegment.begin + 4 * kStep};
  table.share(large);
  const Extent buffer{large.begin + kStep / 2, large.begin + 3 * kStep};
  table.add(buffer.begin, buffer.end - buffer.begin);
  EXPECT_EQ(table.at_or_before(large, buffer.begin + 2 * kStep), buffer);
  EXPECT_EQ(table.behind(large, large.begin), buffer);
}

TEST_F(BufferTableTest, WhatTheTableDoesNotCoverIsUnknown) {
  const Extent beyond{kBase + BufferTable::kSpan, kBase + BufferTable::kSpan + kStep}, before{kBase - kStep, kBase};
  for (const Extent& each : {beyond, before}) {
    table.own(each.begin, 1);
    table.share(each);
    table.add(each.begin, 1);
    table.remove(each.begin);
    EXPECT_EQ(table.at_or_before(each, each.begin), each);
  }
  const Extent last{beyond.begin - kStep, beyond.begin};
  table.share(last);
  table.add(last.end - 1, 1);
  EXPECT_EQ(table.at_or_before(last, last.end - 1), (Extent{last.end - kUnit, last.end}));
  table.remove(last.end - 1);
  EXPECT_FALSE(table.at_or_before(last, last.end - 1));
  const Extent huge{kBase, kBase + BufferTable::kMostShared + kStep};
  table.share({kBase, kBase + kStep});
  EXPECT_EQ(table.at_or_before(huge, kBase), huge);
}

// A client that ended in the middle of a change, or that says anything: an end without a beginning, a beginning without
// an end, a buffer in the middle of another.
TEST_F(BufferTableTest, HalfOfAChangeMakesNoExtentThatLeavesItsSegment) {
  table.share(kSegment);
  const uint64_t bits = (kSegment.begin - kBase) / kUnit / 64;
  uint64_t* const begins = words() + BufferTable::kSteps + bits;
  uint64_t* const ends = begins + BufferTable::kUnits / 64;
  begins[0] = 1 << 4;
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.end - 1), (Extent{kSegment.begin + 4 * kUnit, kSegment.end}));
  begins[0] |= 1 << 9;
  EXPECT_EQ(table.at_or_before(kSegment, kSegment.begin + 5 * kUnit),
            (Extent{kSegment.begin + 4 * kUnit, kSegment.begin + 9 * kUnit}));
  ends[0] = 1 << 2;
  EXPECT_FALSE(table.at_or_before(kSegment, kSegment.begin + 3 * kUnit));
}

TEST_F(BufferTableTest, ALyingClientMisleadsOnlyWithinTheSegment) {
  std::mt19937_64 random(5);
  const Extent whole{kBase, kBase + 4 * kStep};
  for (int i = 0; i < 20000; ++i) {
    const uint64_t word = random() % (whole.end - whole.begin) / kUnit / 64;
    const uint64_t value = random() & random() & random();
    words()[BufferTable::kSteps + word] = value;
    words()[BufferTable::kSteps + BufferTable::kUnits / 64 + word] = random() % 3 ? value : ~value;
    words()[0] = random() % 4 == 0 ? random() >> random() % 64 : 1;
    is_sound(table, {whole.begin, whole.begin + (1 + random() % 4) * kStep}, whole.begin + random() % (8 * kStep));
  }
}

// As the arena does it, against a map.
TEST_F(BufferTableTest, TellsWhatAMapTells) {
  std::mt19937_64 random(1);
  std::map<uint64_t, uint64_t> buffers;
  table.share(kSegment);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t units = kStep / kUnit, begin = kSegment.begin + random() % units * kUnit;
    const auto next = buffers.lower_bound(begin);
    const uint64_t until = next == buffers.end() ? kSegment.end : next->first;
    const bool is_free = next == buffers.begin() || std::prev(next)->second <= begin;
    if (next != buffers.end() && random() % 2) {
      table.remove(next->first);
      buffers.erase(next);
    } else if (is_free && until > begin) {
      const uint64_t bytes = 1 + random() % std::min(until - begin, 40 * kUnit);
      table.add(begin, bytes);
      buffers.emplace(begin, begin + round_up(bytes, kUnit));
    }
    const uint64_t address = kSegment.begin + random() % kStep;
    const auto behind = buffers.upper_bound(address);
    const auto found = table.at_or_before(kSegment, address), following = table.behind(kSegment, address);
    ASSERT_EQ(found.has_value(), behind != buffers.begin());
    ASSERT_TRUE(!found || *found == (Extent{std::prev(behind)->first, std::prev(behind)->second}));
    ASSERT_EQ(following.has_value(), behind != buffers.end());
    ASSERT_TRUE(!following || *following == (Extent{behind->first, behind->second}));
  }
}

// A reader that looks for buffers of records that are not committed finds them, whatever the client does beside them.
TEST_F(BufferTableTest, ABufferIsFoundWhileItsNeighboursComeAndGo) {
  table.share(kSegment);
  const Extent ours{kSegment.begin + 70 * kUnit, kSegment.begin + 200 * kUnit};
  table.add(ours.begin, ours.end - ours.begin);
  std::atomic<bool> over = false;
  std::thread client([&] {
    std::mt19937 random(3);
    while (!over) {
      const uint64_t before = kSegment.begin + random() % 60 * kUnit, behind = ours.end + random() % 60 * kUnit;
      for (const uint64_t each : {before, behind}) table.add(each, 10 * kUnit);
      for (const uint64_t each : {behind, before}) table.remove(each);
    }
  });
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_EQ(table.at_or_before(kSegment, ours.begin), ours);
    EXPECT_EQ(table.at_or_before(kSegment, ours.end - 1), ours);
    EXPECT_EQ(table.behind(kSegment, ours.begin - 1), ours);
    if (HasFailure()) break;
  }
  over = true;
  client.join();
}

}  // namespace
}  // namespace heddle::protocol
