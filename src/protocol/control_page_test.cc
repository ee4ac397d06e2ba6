#include "protocol/control_page.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "protocol/saved_variables.h"

namespace heddle::protocol {
namespace {

using testing::HasSubstr;

struct ControlPageTest : testing::Test {
  void SetUp() override {
    auto made = ControlPage::create();
    ASSERT_TRUE(made) << made.error().text;
    fd = std::move(made->first);
    page = std::move(made->second);
  }
  // Where in the page the word stands, in bytes.
  size_t place_of(uint64_t word) {
    std::array<uint64_t, 512> words{};
    EXPECT_EQ(::pread(fd.get(), words.data(), sizeof words, 0), static_cast<ssize_t>(sizeof words));
    const auto found = std::find(words.begin(), words.end(), word);
    EXPECT_NE(found, words.end());
    return static_cast<size_t>(found - words.begin()) * sizeof word;
  }
  Fd fd;
  ControlPage page;
};

TEST_F(ControlPageTest, BeginsWithNothingMeasured) {
  Usage usage{.launches = 5, .busy_ns = 7};
  ASSERT_TRUE(page.read(usage));
  EXPECT_EQ(usage.launches, 0u);
  EXPECT_EQ(usage.busy_ns, 0u);
}

TEST_F(ControlPageTest, EveryMappingSeesWhatWasPublishedLast) {
  auto other = ControlPage::attach(fd);
  ASSERT_TRUE(other) << other.error().text;
  for (uint64_t round = 1; round <= 3; ++round) {
    page.publish({.launches = round, .busy_since_ns = 10 * round});
    Usage usage;
    ASSERT_TRUE(other->read(usage));
    EXPECT_EQ(usage.launches, round);
    EXPECT_EQ(usage.busy_since_ns, 10 * round);
  }
}

// A worker that dies in the middle of publishing has written to the other slot, and never published its number.
TEST_F(ControlPageTest, AWriterThatDiesLeavesItsLastWholeState) {
  // The slots take turns: the next state goes where the last but one stands.
  constexpr uint64_t kOlder = 0x0123456789abcdef;
  page.publish({.launches = kOlder});
  page.publish({.launches = 1, .busy_ns = 100});
  const auto half_written = std::to_array<uint64_t>({2, 2, 2});
  const auto next = static_cast<off_t>(place_of(kOlder));
  ASSERT_EQ(::pwrite(fd.get(), half_written.data(), sizeof half_written, next),
            static_cast<ssize_t>(sizeof half_written));
  Usage usage;
  ASSERT_TRUE(page.read(usage));
  EXPECT_EQ(usage.launches, 1u);
  EXPECT_EQ(usage.busy_ns, 100u);
  auto successor = ControlPage::attach(fd);
  ASSERT_TRUE(successor);
  successor->publish({.launches = 3});
  ASSERT_TRUE(page.read(usage));
  EXPECT_EQ(usage.launches, 3u);
  EXPECT_EQ(usage.busy_ns, 0u);
}

TEST_F(ControlPageTest, AReaderNeverSeesHalfOfAState) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop.load(std::memory_order_relaxed); ++round)
      page.publish({.launches = round, .copies = round, .busy_since_ns = round});
  });
  uint64_t latest = 0;
  int whole = 0;
  for (int i = 0; i < 20'000; ++i) {
    Usage usage{.launches = latest, .copies = latest, .busy_since_ns = latest};
    whole += page.read(usage);
    EXPECT_EQ(usage.launches, usage.copies);
    EXPECT_EQ(usage.launches, usage.busy_since_ns);
    EXPECT_GE(usage.launches, latest);
    latest = usage.launches;
  }
  stop = true;
  writer.join();
  EXPECT_GT(whole, 0);
}

TEST_F(ControlPageTest, BeginsWithoutLeases) {
  Lease lease{.state = Lease::State::kWithdrawn, .generation = 9};
  ASSERT_TRUE(page.read_lease(lease));
  EXPECT_EQ(lease.state, Lease::State::kOpen);
  EXPECT_EQ(lease.generation, 0u);
  EXPECT_EQ(page.lease_word(), Lease{}.word());
}

TEST_F(ControlPageTest, ALeaseIsReadAsItWasWritten) {
  const auto other = ControlPage::attach(fd);
  ASSERT_TRUE(other);
  Lease written{.state = Lease::State::kHeld, .generation = 7, .until_ns = 1234, .window_ns = 56, .whole_bursts = true};
  page.write_lease(written);
  Lease lease;
  ASSERT_TRUE(other->read_lease(lease));
  EXPECT_EQ(lease.state, Lease::State::kHeld);
  EXPECT_FALSE(lease.wanted);
  EXPECT_EQ(lease.generation, 7u);
  EXPECT_EQ(lease.until_ns, 1234u);
  EXPECT_EQ(lease.window_ns, 56u);
  EXPECT_TRUE(lease.whole_bursts);
  written.state = Lease::State::kWithdrawn;
  written.wanted = true;
  page.write_lease(written);
  EXPECT_EQ(other->lease_word(), written.word());
  ASSERT_TRUE(other->read_lease(lease));
  EXPECT_EQ(lease.state, Lease::State::kWithdrawn);
  EXPECT_TRUE(lease.wanted);
  EXPECT_EQ(lease.until_ns, 1234u);
}

// A heddled that dies in the middle of lending has written terms that no generation names.
TEST_F(ControlPageTest, AHeddledThatDiesWhileItLendsLeavesTheLastLease) {
  constexpr uint64_t kOlder = 0x0123456789abcdef;
  page.write_lease({.state = Lease::State::kHeld, .generation = 1, .until_ns = kOlder});
  page.write_lease({.state = Lease::State::kHeld, .generation = 2, .until_ns = 100});
  const uint64_t half_written = 300;
  const auto next = static_cast<off_t>(place_of(kOlder));
  ASSERT_EQ(::pwrite(fd.get(), &half_written, sizeof half_written, next), static_cast<ssize_t>(sizeof half_written));
  Lease lease;
  ASSERT_TRUE(page.read_lease(lease));
  EXPECT_EQ(lease.generation, 2u);
  EXPECT_EQ(lease.until_ns, 100u);
}

TEST_F(ControlPageTest, AReaderNeverSeesTheTermsOfAnotherGeneration) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop.load(std::memory_order_relaxed); ++round)
      page.write_lease({.state = Lease::State::kHeld, .generation = round, .until_ns = round, .window_ns = round});
  });
  uint64_t latest = 0;
  int whole = 0;
  for (int i = 0; i < 20'000; ++i) {
    Lease lease{.generation = latest, .until_ns = latest, .window_ns = latest};
    whole += page.read_lease(lease);
    if (lease.generation == 0) continue;
    EXPECT_EQ(lease.generation, lease.until_ns);
    EXPECT_EQ(lease.generation, lease.window_ns);
    EXPECT_GE(lease.generation, latest);
    latest = lease.generation;
  }
  stop = true;
  writer.join();
  EXPECT_GT(whole, 0);
}

TEST_F(ControlPageTest, TheLogBeginsWithNothingDone) {
  const LogState log = page.log();
  EXPECT_EQ(log.task, 0u);
  EXPECT_FALSE(log.ended || log.computes());
  EXPECT_TRUE(log.variables_are_saved());
}

TEST_F(ControlPageTest, WhatIsHandedOverIsUnderWayUntilTheLogIsBehindIt) {
  page.note_affected(3);
  EXPECT_TRUE(page.log().computes());
  page.note_cut({2, 128, 0});
  EXPECT_TRUE(page.log().computes());
  page.note_cut({3, 192, 0});
  EXPECT_FALSE(page.log().computes());
  EXPECT_EQ(page.log().record_head, 192u);
}

TEST_F(ControlPageTest, WhatCanBeDoneAgainIsUnderWayAndNoMore) {
  page.note_handed_over(3);
  EXPECT_TRUE(page.log().under_way());
  EXPECT_FALSE(page.log().computes());
  page.note_cut({3, 192, 0});
  EXPECT_FALSE(page.log().under_way());
}

TEST_F(ControlPageTest, WhatIsDoneAndShownIsUnderWayAndNotAtWork) {
  page.note_handed_over(3);
  EXPECT_TRUE(page.log().at_work());
  page.note_shown(3);
  EXPECT_TRUE(page.log().under_way());
  EXPECT_FALSE(page.log().at_work());
  EXPECT_EQ(page.log().shown, 3u);
  page.note_begun(0);  // another worker does it again
  EXPECT_TRUE(page.log().at_work());
  EXPECT_EQ(page.log().shown, 3u) << "the program has seen it all the same";
  page.note_shown(2);
  EXPECT_EQ(page.log().shown, 3u);
  page.note_affected(4);
  page.note_shown(4);
  EXPECT_TRUE(page.log().at_work()) << "nobody knows how much of it was done";
}

// Its number is stored last.
TEST_F(ControlPageTest, AWorkerThatDiesWhileItCompletesLeavesTheLastCut) {
  page.note_cut({0x7777, 0x8888, 0});
  page.note_cut({0x5555, 0x6666, 0});
  const size_t completed = place_of(0x5555);
  page.note_cut({6, 384, 0, {64, 8}});  // where the first was
  const uint64_t next[] = {7, 448};     // over the one before
  ASSERT_EQ(::pwrite(fd.get(), next, sizeof next, static_cast<off_t>(completed)), static_cast<ssize_t>(sizeof next));
  EXPECT_EQ(page.log().completed, 6u);
  EXPECT_EQ(page.log().record_head, 384u);
  EXPECT_EQ(page.log().printed.tail, 64u);
  EXPECT_EQ(page.log().printed.lost, 8u);
}

TEST_F(ControlPageTest, StreamsMayBeCommittedAheadOfTheLog) {
  Cut cut{2, 128, 0};
  cut.streams.raise({5, 9});
  cut.streams.raise({7, 11});
  page.note_handed_over(12);
  page.note_cut(cut);
  EXPECT_EQ(page.log().streams.of(5), 9u);
  EXPECT_EQ(page.log().streams.of(7), 11u);
  EXPECT_EQ(page.log().streams.of(6), 0u);
  EXPECT_TRUE(page.log().under_way());
  page.begin_task(5, true);
  EXPECT_EQ(page.log().streams, cut.streams) << "these records are done for whoever comes";
  cut.streams.forget(9);
  page.note_cut(cut);
  EXPECT_EQ(page.log().streams.of(5), 0u);
  EXPECT_EQ(page.log().streams.of(7), 11u);
}

TEST_F(ControlPageTest, ThereIsSpaceForAllCutsOfStreams) {
  Cut cut;
  for (uint32_t stream = 0; stream < StreamCuts::kMost; ++stream) cut.streams.raise({stream, stream + 1});
  page.note_cut(cut);
  page.note_cut(cut);
  EXPECT_EQ(page.log().streams, cut.streams);
}

// Its worker dies before the number.
TEST_F(ControlPageTest, CutsOfStreamsCountWithTheirCut) {
  page.note_cut({0x5555, 0x6666, 0});
  const size_t words = place_of(0x5555);
  page.note_cut({});
  const uint64_t next[] = {7, 448, 0, 0, 0, 1};  // over the one before, with a stream's
  ASSERT_EQ(::pwrite(fd.get(), next, sizeof next, static_cast<off_t>(words)), static_cast<ssize_t>(sizeof next));
  EXPECT_TRUE(page.log().streams.empty());
}

TEST_F(ControlPageTest, ATaskEndsOnceItsLastRecordIsDone) {
  page.begin_task(4, true);
  page.note_end(9, true);
  page.note_cut({8, 512, 0});
  EXPECT_FALSE(page.log().ended);
  page.note_cut({9, 576, 0});
  EXPECT_TRUE(page.log().ended && page.log().unmapped);
  page.begin_task(5, false);
  EXPECT_FALSE(page.log().ended || page.log().unmapped);
  EXPECT_EQ(page.log().task, 5u);
}

TEST_F(ControlPageTest, ANewTaskForgetsWhatTheLastOneFreed) {
  page.begin_task(1, true);
  for (uint64_t number = 1; number <= ControlPage::kFreedNumbers + 2; ++number) page.note_freed(number);
  EXPECT_EQ(page.log().freed, ControlPage::kFreedNumbers + 2);
  EXPECT_EQ(page.freed(2), 3u) << "the oldest that is there";
  EXPECT_EQ(page.freed(page.log().freed - 1), ControlPage::kFreedNumbers + 2);
  page.begin_task(2, false);
  EXPECT_EQ(page.log().freed, 0u);
}

TEST_F(ControlPageTest, ModulesStayWithTheirWorker) {
  page.begin_task(1, true);
  ASSERT_TRUE(page.note_module({7, 0x1234}));
  page.note_obstacle(Obstacle::kDeviceMalloc);
  page.begin_task(2, false);
  EXPECT_EQ(page.log().modules, 1u);
  EXPECT_EQ(page.module(0).module, 7u);
  EXPECT_EQ(page.log().obstacle, Obstacle::kDeviceMalloc);
  page.begin_task(3, true);
  EXPECT_EQ(page.log().modules, 0u);
  EXPECT_EQ(page.log().obstacle, Obstacle::kNone);
  for (uint64_t n = 0; n < ControlPage::kMostModules; ++n) ASSERT_TRUE(page.note_module({1, 0}));
  EXPECT_FALSE(page.note_module({1, 0}));
}

TEST_F(ControlPageTest, VariablesAreSavedBesideThoseThatCount) {
  auto saved = SavedVariables::attach(fd);
  ASSERT_TRUE(saved) << saved.error().text;
  EXPECT_FALSE(saved->at(0));
  saved->begin(0)[0] = std::byte{1};
  saved->publish(0, 1, 5);
  page.note_cut({5, 320, 5});
  saved->begin(5)[0] = std::byte{2};
  saved->publish(5, 2, 8);  // and dies before the cut
  auto again = SavedVariables::attach(fd);
  ASSERT_TRUE(again);
  const auto counts = again->at(page.log().variables_saved);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->bytes[0], std::byte{1});
  EXPECT_EQ(counts->modules, 1u);
  EXPECT_EQ(counts->bytes.size(), ControlPage::kVariableBytes.value);
  EXPECT_EQ(page.log().task, 0u);  // the page is another part
  again->begin(5)[0] = std::byte{3};
  EXPECT_TRUE(again->at(5)) << "what counts is not written over";
  EXPECT_FALSE(again->at(8));
}

TEST_F(ControlPageTest, AFreshTaskHasNoVariablesSaved) {
  page.note_cut({5, 320, 5});
  page.begin_task(2, true);
  EXPECT_EQ(page.log().variables_saved, 0u);
  EXPECT_EQ(page.log().completed, 5u);
  EXPECT_EQ(page.log().record_head, 320u);
}

TEST_F(ControlPageTest, OtherMemoryIsRefused) {
  const Fd blank = std::move(*create_memfd("blank", ControlPage::kMemoryBytes));
  const auto attached = ControlPage::attach(blank);
  ASSERT_FALSE(attached);
  EXPECT_THAT(attached.error().text, HasSubstr("not a control page"));
  const Fd large = std::move(*create_memfd("large", Bytes{8192}));
  EXPECT_FALSE(ControlPage::attach(large));
  const Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), ControlPage::kMemoryBytes.value), 0);
  EXPECT_FALSE(ControlPage::attach(unsealed));
}

}  // namespace
}  // namespace heddle::protocol
