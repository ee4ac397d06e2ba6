// Workers that die in the middle of a program's work, where epochs are kept: the next one runs it again.

#include "worker/epoch.h"

#include "worker/testing/epoch_harness.h"
#include "worker/testing/in_a_process.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

using EpochTest = EpochHarness;

TEST_F(EpochTest, AnUpdateInPlaceIsRunAgainFromWhatWasThere) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 12u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
  EXPECT_EQ(runs, 3);
}

TEST_F(EpochTest, BuffersThatExchangeRolesAreRestored) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  hold_open();
  run(kMove, kFirst, kSecond);
  run(kMove, kSecond, kFirst);
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kSecond)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
  EXPECT_EQ(at(kSecond), 8u);
}

TEST_F(EpochTest, WhereNothingReadIsOverwrittenNothingIsSaved) {
  hold_open();
  const uint64_t moved = run(kMove, kFirst, kSecond);
  ASSERT_TRUE(handed_over(moved));
  for (const device::Tag tag : context->handed_over()) EXPECT_LE(tag, moved);
  dies_and_next_finishes();
  EXPECT_EQ(at(kSecond), 1u);
}

TEST_F(EpochTest, WhatIsDoneIsHeldBackUntilAllIs) {
  hold_open();
  const uint64_t added = run(kAdd, kFirst, 5);
  ASSERT_TRUE(handed_over(added));
  EXPECT_EQ(stream(1).completed.load(), 0u);
  EXPECT_EQ(header().committed.load(), 0u);
  context->resume(2);
  ASSERT_TRUE(completes(added));
  EXPECT_EQ(stream(1).completed.load(), added);
  EXPECT_EQ(control_page.log().completed, added);
}

TEST_F(EpochTest, AWorkerThatDiesBeforeItHasSavedLeavesMemoryAsItWas) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
}

TEST_F(EpochTest, ThreeDeathsInTheSameEpochAreOneRun) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  for (int death = 0; death < 3; ++death) {
    hold_open();
    ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1)));
    start();
    context->pause(2);
    ASSERT_TRUE(handed_over(writer->last_sequence()));
    EXPECT_FALSE(control_page.log().computes());
  }
  start();
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_EQ(at(kFirst), 8u);
}

// The copies are handed over, and none of them is made, or the first.
TEST_F(EpochTest, AWorkerThatDiesWhileItPutsMemoryBackIsOneDeathMore) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  ASSERT_TRUE(completes(run(kAdd, kSecond, 6)));
  hold_open();
  run(kAdd, kFirst, 7);
  ASSERT_TRUE(handed_over(run(kAdd, kSecond, 8)));
  session.reset();
  for (const bool first_is_back : {false, true}) {
    EXPECT_EQ(testing::in_a_process([&] {
                prepare_context = [this](FakeContext& device) {
                  prepare(device);
                  device.pause(0);
                };
                start();
                const bool begun = eventually([&] { return context->handed_over().size() == 2; });
                if (first_is_back) number(kFirst) = 5;
                return begun ? 0 : 1;
              }),
              0);
    EXPECT_EQ(at_rest(0), first_is_back ? 5u : 12u);
  }
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
  EXPECT_EQ(at(kSecond), 14u);
}

TEST_F(EpochTest, AtomicsWhoseResultIsUsedAreRestored) {
  hold_open();
  run(kTakeSlot, kFirst, 11);
  ASSERT_TRUE(handed_over(run(kTakeSlot, kFirst, 12)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 2u);
  EXPECT_EQ(at(kFirst + 8), 11u);
  EXPECT_EQ(at(kFirst + 16), 12u);
}

TEST_F(EpochTest, VariablesAreThoseOfTheCommit) {
  ASSERT_TRUE(completes(run(kCountUp)));
  ASSERT_TRUE(eventually([&] { return control_page.log().variables_are_saved(); }));
  hold_open();
  ASSERT_TRUE(handed_over(run(kCountUp)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kVariableAt), 102u);
}

TEST_F(EpochTest, LinesArePrintedOnce) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kPrint)));
  EXPECT_EQ(header().print_tail.load(), 0u);
  dies_and_next_finishes();
  EXPECT_EQ(header().print_tail.load(), std::strlen("a line\n"));
}

TEST_F(EpochTest, WhatIsWantedIsShownAlthoughOtherWorkGoesOn) {
  hold_open();
  const uint64_t added = run(kAdd, kFirst, 5);
  header().wanted = added;
  protocol::ring_bell(header().to_worker);
  EXPECT_TRUE(eventually([&] { return stream(1).completed.load() == added; }));
  EXPECT_TRUE(control_page.log().computes()) << "what is under way cannot be run again";
  context->resume(2);
  ASSERT_TRUE(completes(added));
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  EXPECT_FALSE(control_page.log().computes());
}

// Stream 2 has a long kernel under way, which updates the second segment; whoever waits for stream 1 does not wait for
// it.
struct EpochOfTwoStreams : EpochTest {
  void SetUp() override {
    EpochTest::SetUp();
    ASSERT_TRUE(completes(run(kAdd, kSecond, 100)));
    begin_long();
  }
  void begin_long() {
    context->pause(2);
    running = run(kAdd, kSecond, 1, 2);
    ASSERT_TRUE(handed_over(running));
  }
  // Until the worker dies stream 1 is not committed: it goes with a third one.
  void hold_first() {
    live_stream(3, protocol::kStreamNonBlocking);
    context->pause(3);
    run(kWait, 0, 0, 3);
    for (const uint32_t each : {3u, 1u}) simple(RecordType::kEventRecord, each, kHeldEvent);
  }
  bool shown(uint64_t sequence, uint32_t on = 1) {
    header().wanted = sequence;
    protocol::ring_bell(header().to_worker);
    return eventually([&] { return stream(on).completed.load() >= sequence; });
  }
  // What was shown can be done no more, and all else is.
  void dies_and_goes_on() {
    EXPECT_FALSE(control_page.log().computes()) << "it can go on";
    EXPECT_LT(header().completed.load(), running) << "it was in the middle";
    start();
  }
  void all_is_right(uint64_t first, uint64_t second) {
    ASSERT_TRUE(completes(writer->last_sequence()));
    EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
    EXPECT_EQ(at(kFirst), first);
    EXPECT_EQ(at(kSecond), second);
  }
  uint64_t running = 0;
};

TEST_F(EpochOfTwoStreams, WhoWaitsForOneIsShownItsEndAlone) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(shown(run(kAdd, kFirst, 5)));
  EXPECT_EQ(stream(2).completed.load(), 0u);
  EXPECT_EQ(control_page.log().streams.of(1), writer->last_sequence());
  EXPECT_TRUE(eventually([&] { return saved_bytes() == kSegmentBytes; })) << "what was saved of the first is gone";
  dies_and_goes_on();
  all_is_right(15, 101);
  EXPECT_EQ(runs, 5) << "the first one of all, three on stream 1, and the long one again: it had not run yet";
  EXPECT_TRUE(eventually([&] { return control_page.log().streams.empty(); }));
}

TEST_F(EpochOfTwoStreams, WhatGoesOnBehindItsCutIsRunAgainFromThere) {
  ASSERT_TRUE(shown(run(kAdd, kFirst, 5)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_goes_on();
  all_is_right(12, 101);
}

TEST_F(EpochOfTwoStreams, WhatIsRunAgainBehindItsCutIsRestoredToIt) {
  ASSERT_TRUE(shown(run(kAdd, kFirst, 5)));
  hold_first();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 12u);
  dies_and_goes_on();
  all_is_right(12, 101);
}

TEST_F(EpochOfTwoStreams, DeathsInTheSameEpochNeverRunItAgain) {
  for (int death = 0; death < 3; ++death) {
    ASSERT_TRUE(shown(run(kAdd, kFirst, 5)));
    prepare_context = [this](FakeContext& device) {
      prepare(device);
      device.pause(2);
    };
    dies_and_goes_on();
    ASSERT_TRUE(shown(run(kAdd, kFirst, 1)));
    EXPECT_TRUE(handed_over(running));
  }
  context->resume(2);
  all_is_right(18, 101);
  EXPECT_TRUE(eventually([&] { return control_page.log().streams.empty(); }));
}

TEST_F(EpochOfTwoStreams, TheNextWorkerShowsWhatWasNotedAlone) {
  const uint64_t recorded = (run(kAdd, kFirst, 5), simple(RecordType::kEventRecord, 1, 9));
  ASSERT_TRUE(shown(recorded));
  ASSERT_EQ(ring.events()[9].completed.load(), recorded);
  session.reset();
  stream(1).completed = ring.events()[9].completed = 0;  // as if it had died before it showed them
  prepare_context = [this](FakeContext& device) {
    prepare(device);
    device.pause(2);
  };
  start();
  EXPECT_TRUE(eventually([&] { return stream(1).completed.load() == recorded; }));
  EXPECT_EQ(ring.events()[9].completed.load(), recorded);
  ASSERT_TRUE(handed_over(running));
  EXPECT_EQ(stream(1).completed.load(), recorded);
  context->resume(2);
  all_is_right(5, 101);
}

TEST_F(EpochOfTwoStreams, WhoWaitedForACommittedEventGoesOnInTheNextWorker) {
  run(kAdd, kFirst, 5);
  const uint64_t recorded = simple(RecordType::kEventRecord, 1, 9);
  ASSERT_TRUE(shown(recorded));
  simple(RecordType::kEventWait, 2, 9, recorded);
  const uint64_t behind = run(kMove, kFirst, kSecond + 8, 2);
  ASSERT_TRUE(handed_over(behind));
  ASSERT_TRUE(shown(run(kWait)));
  dies_and_goes_on();
  all_is_right(5, 101);
  EXPECT_EQ(at(kSecond + 8), 6u);
}

TEST_F(EpochOfTwoStreams, WhoseRecordsMeetLaterAreTogetherFromThenOn) {
  ASSERT_TRUE(shown(run(kAdd, kFirst, 5)));
  run(kMove, kFirst, kSecond + 8, 2);
  const uint64_t cut = control_page.log().streams.of(1);
  const uint64_t met = run(kAdd, kFirst, 7);
  ASSERT_TRUE(handed_over(met));
  EXPECT_EQ(control_page.log().streams.of(1), cut);
  dies_and_goes_on();
  all_is_right(12, 101);
}

// Records behind the first one have saved what it left, and a next run of it may leave something else.
TEST_F(EpochOfTwoStreams, NothingIsCommittedAloneBeforeAllIsHandedOverAgain) {
  hold_first();
  const uint64_t first = run(kAdd, kFirst, 5);
  map(3, kSecond + kSegmentBytes);
  simple(RecordType::kNeed, 0, 3);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  prepare_context = [this](FakeContext& device) {
    prepare(device);
    device.pause(2);
  };
  dies_and_goes_on();
  ASSERT_TRUE(shown(first)) << "when its patience is over";
  EXPECT_TRUE(control_page.log().streams.empty());
  EXPECT_TRUE(control_page.log().computes());
  map(3, kSecond + kSegmentBytes);
  context->resume(2);
  all_is_right(12, 101);
}

TEST_F(EpochOfTwoStreams, WithASharedBufferOneWaitsForTheOther) {
  run(kMove, kFirst, kSecond + 8, 2);
  const uint64_t met = run(kAdd, kFirst, 7);
  ASSERT_TRUE(shown(met)) << "when its patience is over";
  EXPECT_TRUE(control_page.log().streams.empty());
  EXPECT_TRUE(control_page.log().computes());
}

TEST_F(EpochOfTwoStreams, WhatBothReadKeepsThemApart) {
  ASSERT_TRUE(shown(run(kMove, kFirst, kFirst + 8)));
  EXPECT_FALSE(control_page.log().computes());
  run(kMove, kFirst, kSecond + 8, 2);
  ASSERT_TRUE(shown(run(kWait)));
  EXPECT_FALSE(control_page.log().computes());
}

TEST_F(EpochOfTwoStreams, WhereVariablesAreWrittenAllIsTogether) {
  ASSERT_TRUE(shown(run(kCountUp)));
  EXPECT_TRUE(control_page.log().streams.empty());
}

TEST_F(EpochOfTwoStreams, WhereTextIsPrintedAllIsTogether) {
  ASSERT_TRUE(shown(run(kPrint)));
  EXPECT_TRUE(control_page.log().streams.empty());
  EXPECT_EQ(header().print_tail.load(), std::strlen("a line\n"));
}

// The first on stream 1, then a long one on stream 2: what is committed of the log goes as far as it can.
TEST_F(EpochOfTwoStreams, SpaceBeforeTheFirstThatIsHeldBackIsFree) {
  context->resume(2);
  ASSERT_TRUE(completes(writer->last_sequence()));
  const uint64_t first = run(kAdd, kFirst, 5);
  ASSERT_TRUE(completes(first));
  context->pause(1);
  const uint64_t other = run(kAdd, kFirst, 6);
  ASSERT_TRUE(handed_over(other));
  begin_long();
  context->resume(1);
  ASSERT_TRUE(shown(other));
  EXPECT_TRUE(eventually([&] { return header().committed.load() == other; }));
  EXPECT_EQ(control_page.log().completed, other);
  EXPECT_TRUE(control_page.log().streams.empty());
  dies_and_goes_on();
  all_is_right(11, 102);
}

TEST_F(EpochTest, AKernelThatIsNotUnderstoodNeedsAllMemorySaved) {
  hold_open();
  const uint64_t unknown = run(kUnknown, kFirst);
  ASSERT_TRUE(handed_over(unknown));
  EXPECT_EQ(at(kFirst), 1u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 1u);
}

// Three buffers share the first segment.
struct EpochByBuffer : EpochTest {
  void SetUp() override {
    EpochTest::SetUp();
    table().share({kFirst, kFirst + kSegmentBytes});
    for (const uint64_t each : {kLeft, kMiddle, kRight}) table().add(each, kBuffer);
  }
  static constexpr uint64_t kBuffer = 4 * kKiB;
  static constexpr uint64_t kLeft = kFirst, kMiddle = kFirst + 64 * kKiB, kRight = kFirst + kMiB;
};

TEST_F(EpochByBuffer, AnUpdateInPlaceHasItsBufferSaved) {
  ASSERT_TRUE(completes(run(kAdd, kMiddle, 5)));
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kMiddle, 7)));
  EXPECT_EQ(saved_bytes(), kBuffer);
  ASSERT_TRUE(handed_over(run(kMove, kMiddle, kRight)));
  EXPECT_EQ(saved_bytes(), kBuffer) << "output in another buffer of the segment";
  ASSERT_TRUE(handed_over(run(kMove, kRight, kMiddle + 8)));
  EXPECT_EQ(saved_bytes(), kBuffer) << "it is saved already";
  dies_and_next_finishes();
  EXPECT_EQ(at(kMiddle), 12u);
  EXPECT_EQ(at(kMiddle + 8), 14u);
  EXPECT_EQ(at(kRight), 13u);
}

TEST_F(EpochByBuffer, OfAKernelThatIsNotUnderstoodAllBuffersAreSaved) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kUnknown, kRight)));
  EXPECT_EQ(saved_bytes(), 3 * kBuffer + kSegmentBytes) << "of the second segment nothing is known";
  dies_and_next_finishes();
  EXPECT_EQ(at(kRight), 1u);
}

// What a program does that frees a buffer behind its work and has another one in its place: the table changes once the
// work before is committed, while the epoch that follows is open.
TEST_F(EpochByBuffer, MemoryMayChangeHandsWhileAnEpochIsOpen) {
  const uint64_t before = run(kAdd, kLeft, 3);
  ASSERT_TRUE(completes(before));
  ASSERT_TRUE(commits());
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kMiddle, 5)));
  table().remove(kLeft);
  table().add(kLeft + 512, 60 * kKiB);
  run(kAdd, kLeft + 512, 9);
  ASSERT_TRUE(handed_over(run(kAdd, kLeft + 512, 2)));
  EXPECT_EQ(saved_bytes(), kBuffer + 60 * kKiB);
  dies_and_next_finishes();
  EXPECT_EQ(at(kMiddle), 5u);
  EXPECT_EQ(at(kLeft + 512), 11u);
}

TEST_F(EpochByBuffer, ASegmentWhoseBuffersAreForgottenIsSavedWhole) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kMiddle, 5)));
  table().forget(kFirst);
  ASSERT_TRUE(handed_over(run(kAdd, kRight, 5)));
  EXPECT_EQ(saved_bytes(), kSegmentBytes);
  dies_and_next_finishes();
  EXPECT_EQ(at(kMiddle), 5u);
  EXPECT_EQ(at(kRight), 5u);
}

TEST_F(EpochTest, WithoutRoomForItTheDeathIsTheSessions) {
  session.reset();
  undo = Bytes{kSegmentBytes};  // for one, and not for both
  auto page = protocol::ControlPage::create(undo);
  ASSERT_TRUE(page);
  control_fd = std::move(page->first);
  control_page = std::move(page->second);
  start();
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kUnknown)));
  EXPECT_TRUE(control_page.log().computes());
  context->resume(1);
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_FALSE(control_page.log().computes());
}

TEST_F(EpochTest, PinnedMemoryThatKernelsReachCannotBeRepeated) {
  map(9, kTestBase + window.device_bytes - kSegmentBytes, protocol::SegmentKind::kHost);
  ASSERT_TRUE(completes(simple(RecordType::kNeed, 0, 9)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kTestBase + window.device_bytes - kSegmentBytes, 1)));
  EXPECT_TRUE(control_page.log().computes());
}

TEST_F(EpochTest, AFreeWaitsForTheCommit) {
  context->pause(1);
  run(kAdd, kFirst, 5);
  const uint64_t freed = simple(RecordType::kFree, 0, 2);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() >= 2; }));
  EXPECT_TRUE(context->mapped().contains(kSecond));
  context->resume(1);
  ASSERT_TRUE(completes(freed));
  EXPECT_FALSE(context->mapped().contains(kSecond));
}

TEST_F(EpochTest, BesideAnOpenHostCallNothingIsHeldBack) {
  const uint64_t call = simple(RecordType::kHostCall, 2);
  ASSERT_TRUE(eventually([&] { return stream(2).host_reached.load() == call; }));
  const uint64_t added = run(kAdd, kFirst, 5);
  EXPECT_TRUE(eventually([&] { return stream(1).completed.load() == added; }));
  stream(2).host_done = call;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(completes(added));
}

TEST_F(EpochTest, ATaskEndsBehindItsCommit) {
  run(kAdd, kFirst, 5);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_TRUE(control_page.log().ended);
  EXPECT_EQ(at_rest(0), 5u);
}

TEST_F(EpochTest, AFaultEndsTheEpoch) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  fail_device(kCudaIllegalAddress, "another's");
  EXPECT_TRUE(eventually([&] { return header().committed.load() == 0 && header().fault.load() != 0; }));
  const uint64_t freed = simple(RecordType::kFree, 0, 2);
  context->resume(2);
  EXPECT_TRUE(completes(freed));
}

}  // namespace
}  // namespace heddle::worker
