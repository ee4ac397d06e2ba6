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
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 12u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
  EXPECT_EQ(runs, 3);
}

TEST_F(EpochTest, BuffersThatExchangeRolesAreRestored) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  hold_open();
  run(kWait, 0, 0, 2);
  run(kMove, kFirst, kSecond);
  run(kMove, kSecond, kFirst);
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kSecond)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
  EXPECT_EQ(at(kSecond), 8u);
}

TEST_F(EpochTest, WhereNothingReadIsOverwrittenNothingIsSaved) {
  hold_open();
  run(kWait, 0, 0, 2);
  const uint64_t moved = run(kMove, kFirst, kSecond);
  ASSERT_TRUE(handed_over(moved));
  for (const device::Tag tag : context->handed_over()) EXPECT_LE(tag, moved);
  dies_and_next_finishes();
  EXPECT_EQ(at(kSecond), 1u);
}

TEST_F(EpochTest, WhatIsDoneIsHeldBackUntilAllIs) {
  hold_open();
  run(kWait, 0, 0, 2);
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
    run(kWait, 0, 0, 2);
    ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1)));
    start();
    hold_open();
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
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kCountUp)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kVariableAt), 102u);
}

TEST_F(EpochTest, LinesArePrintedOnce) {
  hold_open();
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kPrint)));
  EXPECT_EQ(header().print_tail.load(), 0u);
  dies_and_next_finishes();
  EXPECT_EQ(header().print_tail.load(), std::strlen("a line\n"));
}

TEST_F(EpochTest, WhatIsWantedIsShownAlthoughOtherWorkGoesOn) {
  hold_open();
  run(kWait, 0, 0, 2);
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

TEST_F(EpochTest, AKernelThatIsNotUnderstoodNeedsAllMemorySaved) {
  hold_open();
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
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
  ASSERT_GE(header().committed.load(), before);
  hold_open();
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
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
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  fail_device(kCudaIllegalAddress, "another's");
  EXPECT_TRUE(eventually([&] { return header().committed.load() == 0 && header().fault.load() != 0; }));
  const uint64_t freed = simple(RecordType::kFree, 0, 2);
  context->resume(2);
  EXPECT_TRUE(completes(freed));
}

}  // namespace
}  // namespace heddle::worker
