// Work that would do exactly the same again: the program is shown it before it is committed.

#include "worker/exact_span.h"
#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

TEST(ExactSpan, GoesOnForManyTimesAsLongAsItsCopiesTake) {
  const TimePoint start{};
  ExactSpan span;
  span.begin(start);
  EXPECT_FALSE(span.goes_on(start)) << "commits cost nothing where nothing is copied";
  span.copies(std::chrono::milliseconds(1));
  EXPECT_TRUE(span.goes_on(start + std::chrono::milliseconds(63)));
  EXPECT_FALSE(span.goes_on(start + std::chrono::milliseconds(64)));
  EXPECT_EQ(span.left(start + std::chrono::milliseconds(60)), std::chrono::milliseconds(4));
  span.copies(std::chrono::milliseconds(100));
  EXPECT_FALSE(span.goes_on(start + ExactSpan::kLongest));
}

TEST(ExactSpan, EndsWithWorkThatIsNotExact) {
  const TimePoint start{};
  ExactSpan span;
  span.begin(start);
  span.copies(std::chrono::milliseconds(1));
  span.forgo();
  EXPECT_FALSE(span.goes_on(start));
  span.begin(start);
  span.copies(std::chrono::milliseconds(1));
  EXPECT_TRUE(span.goes_on(start));
}

// Copies take long, so that epochs go on for a second.
struct ExactEpochTest : EpochHarness {
  static constexpr uint64_t kPinned = kTestBase + 64 * kMiB;

  void SetUp() override {
    EpochHarness::SetUp();
    make_copies_dear();
  }
  // What is measured at the first says so of the next ones.
  void make_copies_dear() {
    context->mib_takes = std::chrono::seconds(1);
    ASSERT_TRUE(completes(run(kAdd, kSecond, 1)));
    ASSERT_TRUE(commits());
  }
  bool is_committed(uint64_t sequence) { return control_page.log().completed >= sequence; }
  uint64_t copy(protocol::CopyEnd to, protocol::CopyEnd from) {
    auto* record = writer->reserve<protocol::CopyRecord>(RecordType::kCopy, 1);
    record->to = to;
    record->from = from;
    record->width = 8;
    record->height = record->depth = 1;
    writer->publish();
    return writer->last_sequence();
  }
  static protocol::CopyEnd window_end(uint64_t address) { return {protocol::Place::kWindow, 0, 0, 0, address, 8, 8}; }
  static protocol::CopyEnd bulk_end(uint64_t position) { return {protocol::Place::kBulk, 0, 0, 0, position, 8, 8}; }
  uint64_t& in_bulk(uint64_t position) { return *reinterpret_cast<uint64_t*>(bulk_at(position)); }
  // Ends the worker after its variables are saved, without which no other worker could go on. A save may be delayed, by
  // what the last one took.
  void dies() {
    EXPECT_FALSE(is_unprotected());
    EXPECT_TRUE(eventually([&] { return control_page.log().variables_are_saved(); }));
    session.reset();
  }
  void next_finishes() {
    start();
    ASSERT_TRUE(completes(marker(1)));
    EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  }
};

TEST_F(ExactEpochTest, WhoWaitsAfterEachUpdateInPlaceHasItsMemorySavedOnce) {
  const size_t before = saves();
  for (int i = 0; i < 5; ++i) {
    const uint64_t added = run(kAdd, kFirst, 1);
    ASSERT_TRUE(completes(added));
    EXPECT_EQ(stream(1).completed.load(), added);
    EXPECT_FALSE(is_committed(added));
  }
  EXPECT_EQ(saves(), before + 2) << "a copy and its stamp";
  EXPECT_FALSE(control_page.log().at_work());
  dies();
  next_finishes();
  EXPECT_EQ(at(kFirst), 5u);
}

TEST_F(ExactEpochTest, WhatIsShownIsNotYetSpaceInTheRing) {
  const uint64_t committed = header().committed.load(), head = header().record_head.load();
  ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
  EXPECT_EQ(header().committed.load(), committed);
  EXPECT_EQ(header().record_head.load(), head);
  ASSERT_TRUE(commits());
  EXPECT_GT(header().record_head.load(), head);
}

TEST_F(ExactEpochTest, TheProgramsMemoryIsWrittenOnce) {
  map(9, kPinned, protocol::SegmentKind::kHost);
  const uint64_t place = reserve_bulk(8);
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  copy(window_end(kPinned), window_end(kFirst));
  ASSERT_TRUE(completes(copy(bulk_end(place), window_end(kFirst))));
  EXPECT_EQ(at(kPinned), 5u);
  EXPECT_EQ(in_bulk(place), 5u);
  dies();
  in_bulk(place) = 77;  // it has something else there now
  next_finishes();
  EXPECT_EQ(in_bulk(place), 77u);
  EXPECT_EQ(at(kFirst), 5u);
}

TEST_F(ExactEpochTest, WhatWasNotSeenIsWrittenAgain) {
  const uint64_t place = reserve_bulk(8);
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  context->pause(1);
  run(kAdd, kFirst, 2);
  ASSERT_TRUE(handed_over(copy(bulk_end(place), window_end(kFirst))));
  dies();
  next_finishes();
  EXPECT_EQ(in_bulk(place), 7u);
}

TEST_F(ExactEpochTest, DeathsOneAfterTheOtherAreOneRun) {
  for (int death = 0; death < 3; ++death) {
    ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
    dies();
    start();
  }
  ASSERT_TRUE(completes(marker(1)));
  EXPECT_EQ(at(kFirst), 3u);
}

// The next worker may have the words of what its forerunner had noted and not shown yet.
TEST_F(ExactEpochTest, TheNextWorkerShowsWhatWasNoted) {
  const uint64_t recorded = (run(kAdd, kFirst, 5), simple(RecordType::kEventRecord, 1, 9));
  ASSERT_TRUE(completes(recorded));
  ASSERT_EQ(control_page.log().shown, recorded);
  dies();
  stream(1).completed = ring.events()[9].completed = 0;
  header().completed = header().committed.load();
  prepare_context = [this](FakeContext& device) {
    prepare(device);
    device.pause(1);
  };
  start();
  EXPECT_TRUE(eventually([&] { return header().completed.load() == recorded; }));
  EXPECT_EQ(stream(1).completed.load(), recorded);
  EXPECT_EQ(ring.events()[9].completed.load(), recorded);
  EXPECT_TRUE(control_page.log().at_work());
  context->resume(1);
  ASSERT_TRUE(completes(marker(1)));
  EXPECT_EQ(at(kFirst), 5u);
}

TEST_F(ExactEpochTest, VariablesAreThoseOfTheCommit) {
  ASSERT_TRUE(completes(run(kCountUp)));
  ASSERT_TRUE(commits());
  ASSERT_TRUE(eventually([&] { return control_page.log().variables_are_saved(); }));
  run(kAdd, kFirst, 1);
  ASSERT_TRUE(completes(run(kCountUp)));
  ASSERT_TRUE(completes(run(kCountUp)));
  dies();
  next_finishes();
  EXPECT_EQ(at(kVariableAt), 103u);
}

TEST_F(ExactEpochTest, WhatMayComeOutOtherwiseIsCommittedBeforeItIsShown) {
  run(kAdd, kFirst + 64, 1);
  const uint64_t taken = run(kTakeSlot, kFirst, 11);
  ASSERT_TRUE(completes(taken));
  EXPECT_TRUE(is_committed(taken));
}

TEST_F(ExactEpochTest, WhatReadsPinnedMemoryIsCommittedBeforeItIsShown) {
  map(9, kPinned, protocol::SegmentKind::kHost);
  run(kAdd, kFirst, 1);
  const uint64_t read = copy(window_end(kFirst), window_end(kPinned));
  ASSERT_TRUE(completes(read));
  EXPECT_TRUE(is_committed(read));
}

TEST_F(ExactEpochTest, LinesAreCommittedBeforeTheyAreShown) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
  const uint64_t printed = run(kPrint);
  ASSERT_TRUE(completes(printed));
  EXPECT_TRUE(is_committed(printed));
  EXPECT_EQ(header().print_tail.load(), std::strlen("a line\n"));
}

TEST_F(ExactEpochTest, AnotherStreamsWorkBeginsWithACommit) {
  const uint64_t added = run(kAdd, kFirst, 1);
  ASSERT_TRUE(completes(added));
  ASSERT_FALSE(is_committed(added));
  context->pause(2);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1, 2)));
  EXPECT_TRUE(is_committed(added));
}

// Stream 2's kernel came when the program had seen stream 1's first one; nothing in the log says so.
TEST_F(ExactEpochTest, WhatTheProgramHasOrderedIsRunAgainInThatOrder) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kSecond + 8, 1)));
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kFirst + 64, 2)));
  EXPECT_EQ(at(kFirst + 64), 6u);
  dies();
  prepare_context = [this](FakeContext& device) {
    prepare(device);
    device.pause(1);
  };
  start();
  ASSERT_TRUE(eventually([&] { return !context->handed_over().empty(); }));
  context->resume(1);
  ASSERT_TRUE(completes(marker(2)));
  EXPECT_EQ(at(kFirst), 5u);
  EXPECT_EQ(at(kFirst + 64), 6u);
}

TEST_F(ExactEpochTest, FreesWaitForTheirCommit) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
  const uint64_t freed = simple(RecordType::kFree, 0, 1);
  ASSERT_TRUE(completes(freed));
  EXPECT_TRUE(is_committed(freed));
}

TEST_F(ExactEpochTest, AProgramThatGoesQuietIsCommitted) {
  const uint64_t added = run(kAdd, kFirst, 1);
  ASSERT_TRUE(completes(added));
  EXPECT_TRUE(eventually([&] { return is_committed(added); })) << "after a second";
}

}  // namespace
}  // namespace heddle::worker
