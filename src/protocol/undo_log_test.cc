#include "protocol/undo_log.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "protocol/control_page.h"

namespace heddle::protocol {
namespace {

using testing::ElementsAre;

constexpr uint64_t kAreaBytes = 64 * kKiB;

struct UndoLogTest : testing::Test {
  void SetUp() override {
    auto made = ControlPage::create(Bytes{kAreaBytes});
    ASSERT_TRUE(made) << made.error().text;
    fd = std::move(made->first);
    log = attach();
  }
  UndoLog attach() const { return std::move(*UndoLog::attach(fd)); }
  // As the device does, behind the copies.
  static void make_stamp(const UndoLog& log) {
    const UndoLog::Stamp stamp = log.stamp();
    std::memcpy(stamp.to, stamp.from, 8);
  }
  void add(uint64_t sequence, std::vector<UndoLog::Part> parts, bool stamped = true, uint32_t stream = 1) {
    ASSERT_TRUE(log.has_room(parts.size(), parts.size() * 64));
    for (const auto& copy : log.add(sequence, stream, parts))
      std::memset(copy.to.data(), static_cast<int>(sequence), copy.to.size());
    if (stamped) make_stamp(log);
  }
  static std::vector<uint64_t> sequences(UndoLog& log, uint64_t completed, const StreamCuts& streams = {}) {
    std::vector<uint64_t> all;
    for (const UndoEntry& entry : log.left(completed, streams)) all.push_back(entry.sequence);
    return all;
  }

  Fd fd;
  UndoLog log;
};

TEST_F(UndoLogTest, ANextWorkerFindsWhatWasCopied) {
  add(3, {{7, 128, 100}, {8, 0, 10}});
  UndoLog next = attach();
  const auto left = next.left(2);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].segment, 7u);
  EXPECT_EQ(left[0].offset, 128u);
  EXPECT_EQ(left[0].bytes, 100u);
  EXPECT_EQ(next.bytes_of(left[0])[99], std::byte{3});
  EXPECT_EQ(left[1].segment, 8u);
}

TEST_F(UndoLogTest, WhatIsBehindTheCutAloneCounts) {
  add(3, {{7, 0, 8}});
  add(4, {{8, 0, 8}});
  UndoLog next = attach();
  EXPECT_THAT(sequences(next, 3), ElementsAre(4));
}

TEST_F(UndoLogTest, OfAStreamThatIsCommittedAheadNothingCounts) {
  add(3, {{7, 0, 8}}, true, 1);
  add(4, {{8, 0, 8}}, true, 2);
  add(5, {{9, 0, 8}}, true, 2);
  StreamCuts streams;
  streams.raise({2, 4});
  UndoLog next = attach();
  EXPECT_THAT(sequences(next, 2, streams), ElementsAre(3, 5));
}

TEST_F(UndoLogTest, WhatWasAddedLastLeavesItsSpaceOnceItIsCommitted) {
  add(3, {{7, 0, 100}}, true, 1);
  add(4, {{8, 0, kAreaBytes / 2}}, true, 2);
  add(5, {{9, 0, 8}}, true, 2);
  EXPECT_FALSE(log.has_room(1, kAreaBytes / 2));
  log.forget_last([](uint32_t stream, uint64_t) { return stream == 2; });
  EXPECT_TRUE(log.has_room(1, kAreaBytes / 2));
  add(6, {{8, 0, 8}}, false, 2);  // where a stamp was
  EXPECT_EQ(log.bytes(), 108u);
  UndoLog next = attach();
  const auto left = next.left(2);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].stream, 1u);
  EXPECT_EQ(next.bytes_of(left[0])[99], std::byte{3});
  log.forget_last([](uint32_t, uint64_t) { return true; });
  EXPECT_TRUE(log.empty());
}

// The worker died between its entries and the stamp: the record has not begun.
TEST_F(UndoLogTest, WithoutItsStampNothingOfARecordCounts) {
  add(3, {{7, 0, 8}, {8, 0, 8}}, false);
  add(4, {{9, 0, 8}});  // on another stream
  UndoLog next = attach();
  EXPECT_THAT(sequences(next, 2), ElementsAre(4));
  EXPECT_THAT(sequences(next, 2), ElementsAre(4));
}

// It runs record 3 again, and finds that there is more to be saved before it; dies, too.
TEST_F(UndoLogTest, EntriesOfTwoWorkersForOneRecordCountEachByTheirOwnStamp) {
  add(3, {{7, 0, 8}});
  log = attach();
  EXPECT_THAT(sequences(log, 2), ElementsAre(3));
  add(3, {{8, 0, 8}}, false);
  UndoLog third = attach();
  const auto left = third.left(2);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].segment, 7u);
  EXPECT_EQ(third.bytes_of(left[0])[0], std::byte{3}) << "the second worker's copy lies behind it";
}

TEST_F(UndoLogTest, ANewEpochBeginsWithNothing) {
  add(3, {{7, 0, 8}});
  log.clear();
  EXPECT_TRUE(log.empty());
  add(5, {{7, 0, 8}}, false);  // where the first one's stamp was
  UndoLog next = attach();
  EXPECT_THAT(sequences(next, 0), ElementsAre());
}

TEST_F(UndoLogTest, ItIsFullWhereItsAreaIs) {
  EXPECT_TRUE(log.has_room(1, kAreaBytes - 64));
  EXPECT_FALSE(log.has_room(1, kAreaBytes));
  EXPECT_FALSE(log.has_room(2, UINT64_MAX - 64));
  EXPECT_FALSE(log.has_room(UndoLog::kMostEntries + 1, 0));
  add(1, {{7, 0, kAreaBytes / 2}});
  EXPECT_FALSE(log.has_room(1, kAreaBytes / 2));
}

TEST_F(UndoLogTest, NoCopyLiesInTwoPiecesOfTheArea) {
  constexpr uint64_t kLarge = 20 * kMiB;
  auto made = ControlPage::create(Bytes{2 * kLarge});
  ASSERT_TRUE(made) << made.error().text;
  auto large = UndoLog::attach(made->first);
  ASSERT_TRUE(large) << large.error().text;
  const auto pieces = large->pieces();
  uint64_t sum = 0;
  for (const auto piece : pieces) sum += piece.size();
  EXPECT_EQ(sum, 2 * kLarge);
  ASSERT_TRUE(large->has_room(2, kLarge + 100));
  const UndoLog::Part parts[] = {{7, 0, 100}, {8, 4096, kLarge}};
  uint64_t copied = 0;
  for (const auto& [from, to] : large->add(3, 1, parts)) {
    const auto inside = [&, copy = to](std::span<std::byte> piece) {
      return copy.data() >= piece.data() && copy.data() + copy.size() <= piece.data() + piece.size();
    };
    EXPECT_EQ(std::count_if(pieces.begin(), pieces.end(), inside), 1) << from.offset << ": " << to.size();
    if (from.segment == 8) {
      EXPECT_EQ(from.offset, 4096 + copied);
      copied += from.bytes;
    }
    EXPECT_EQ(from.bytes, to.size());
  }
  EXPECT_EQ(copied, kLarge);
  make_stamp(*large);
  EXPECT_EQ(large->left(2).size(), 1 + (kLarge + 100) / pieces[0].size() + 1) << "each counts by the one stamp";
}

// In a table that is nearly full.
TEST_F(UndoLogTest, APartThatIsDividedNeedsRoomForEachOfItsEntries) {
  auto made = ControlPage::create(Bytes{32 * kMiB});
  ASSERT_TRUE(made) << made.error().text;
  auto large = UndoLog::attach(made->first);
  ASSERT_TRUE(large) << large.error().text;
  const std::vector<UndoLog::Part> many(UndoLog::kMostEntries - 2, {7, 0, 1});
  ASSERT_TRUE(large->has_room(many.size(), many.size()));
  large->add(1, 1, many);
  EXPECT_TRUE(large->has_room(1, large->pieces()[0].size()));
  EXPECT_FALSE(large->has_room(1, 2 * large->pieces()[0].size()));
}

TEST_F(UndoLogTest, APageWithoutAnAreaHasNoRoom) {
  auto made = ControlPage::create();
  ASSERT_TRUE(made);
  auto none = UndoLog::attach(made->first);
  ASSERT_TRUE(none) << none.error().text;
  EXPECT_FALSE(none->has_room(1, 1));
  EXPECT_TRUE(none->left(0).empty());
  EXPECT_FALSE(UndoLog::attach(*create_memfd("small", Bytes{4096})));
}

}  // namespace
}  // namespace heddle::protocol
