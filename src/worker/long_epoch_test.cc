// Where epochs protect long work alone: what of a worker's death in the middle of work its program survives, and that
// short work pays nothing for it.

#include <thread>

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

struct LongEpochTest : EpochHarness {
  void SetUp() override {
    long_from = std::chrono::milliseconds(5);
    EpochHarness::SetUp();
  }
  // From now on it is known how long each of these takes.
  void runs_once(std::initializer_list<EpochKernel> kernels) {
    for (const EpochKernel kernel : kernels) {
      ASSERT_TRUE(completes(run(kernel, kFirst, 0)));
      ASSERT_TRUE(completes(marker(1)));
    }
    saves_before = saves();
  }

  size_t saves_before = 0;
};

TEST_F(LongEpochTest, WhatIsShortPassesBy) {
  runs_once({kAdd});
  context->pause(1);
  const uint64_t added = run(kAdd, kFirst, 5);
  ASSERT_TRUE(handed_over(added));
  EXPECT_TRUE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(added));
  EXPECT_FALSE(is_unprotected());
  EXPECT_EQ(saves(), saves_before);
  EXPECT_EQ(stream(1).completed.load(), added);
}

TEST_F(LongEpochTest, WhatIsLongIsRunAgain) {
  runs_once({kLongAdd, kLongWait});
  hold_open(kLongWait);
  ASSERT_TRUE(handed_over(run(kLongAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 7u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

TEST_F(LongEpochTest, WhatWasNeverSeenIsRunAgain) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

TEST_F(LongEpochTest, WhatIsShortIsRunAgainBesideALongKernel) {
  runs_once({kAdd, kLongWait});
  hold_open(kLongWait);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 7u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

TEST_F(LongEpochTest, AnotherWorkersTimesAreUnknown) {
  runs_once({kAdd});
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kLongAdd, kFirst, 1)));
  start();
  context->pause(1);
  ASSERT_TRUE(handed_over(writer->last_sequence()));
  EXPECT_FALSE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(writer->last_sequence()));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1)));
  EXPECT_FALSE(is_unprotected());
}

TEST_F(LongEpochTest, BehindALongKernelIsACommit) {
  runs_once({kAdd, kLongAdd});
  context->pause(1);
  const uint64_t longer = run(kLongAdd, kFirst, 1);
  const uint64_t added = run(kAdd, kSecond, 1);
  ASSERT_TRUE(handed_over(longer));
  EXPECT_FALSE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(added));
  EXPECT_GE(committed_at_run, longer);
  EXPECT_EQ(saves() - saves_before, 2u) << "of the long kernel alone";
}

TEST_F(LongEpochTest, BeforeALongKernelIsACommit) {
  runs_once({kWait, kLongAdd});
  context->pause(2);
  const uint64_t waited = run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(waited));
  const uint64_t longer = run(kLongAdd, kFirst, 1);
  EXPECT_TRUE(is_unprotected());
  context->pause(1);
  std::this_thread::sleep_for(Epoch::kLongPatience +
                              Epoch::kPatience);  // for which it would wait beside other streams'
  context->resume(2);
  ASSERT_TRUE(handed_over(longer));
  EXPECT_FALSE(is_unprotected());
  EXPECT_GE(control_page.log().completed, waited);
  context->resume(1);
  ASSERT_TRUE(completes(longer));
}

TEST_F(LongEpochTest, WhatIsVeryLongHasAnEpochOfItsOwn) {
  runs_once({kVeryLong});
  context->pause(1);
  const uint64_t first = run(kVeryLong, kFirst, 1), second = run(kVeryLong, kFirst, 1);
  ASSERT_TRUE(handed_over(first));
  context->resume(1);
  ASSERT_TRUE(completes(second));
  EXPECT_GE(committed_at_run, first);
  EXPECT_EQ(saves() - saves_before, 4u) << "each saved what it overwrites";
}

// A copy of the segment takes 10 ms, the kernel 50 ms.
TEST_F(LongEpochTest, CopiesThatTakeMuchOfTheKernelsTimeAreNotMade) {
  context->mib_takes = std::chrono::milliseconds(5);
  runs_once({kLongAdd});
  context->pause(1);
  const uint64_t first = run(kLongAdd, kFirst, 1);
  ASSERT_TRUE(handed_over(first));
  EXPECT_TRUE(is_unprotected());
  const uint64_t second = run(kLongAdd, kFirst, 1);
  ASSERT_TRUE(handed_over(second)) << "and it waits for nobody";
  context->resume(1);
  ASSERT_TRUE(completes(second));
  EXPECT_EQ(saves(), saves_before);
  EXPECT_FALSE(is_unprotected());
}

TEST_F(LongEpochTest, CopiesOfASmallBufferAreWorthIt) {
  context->mib_takes = std::chrono::milliseconds(5);
  runs_once({kLongAdd});
  table().share({kFirst, kFirst + kSegmentBytes});
  table().add(kFirst, 4 * kKiB);
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kLongAdd, kFirst, 7)));
  EXPECT_FALSE(is_unprotected());
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

// On the only stream: it waits for the other's epoch to end, and then it passes by.
TEST_F(LongEpochTest, BehindProtectedWorkWhatCostsTooMuchWaits) {
  context->mib_takes = std::chrono::milliseconds(5);
  runs_once({kLongAdd, kLongWait});
  context->pause(1);
  const uint64_t waited = run(kLongWait);
  ASSERT_TRUE(handed_over(waited));
  const uint64_t added = run(kLongAdd, kFirst, 1);
  EXPECT_FALSE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(added));
  EXPECT_GE(committed_at_run, waited);
  EXPECT_EQ(saves(), saves_before);
}

TEST_F(LongEpochTest, WhatMayBeLongIsTimedApart) {
  runs_once({kAdd, kLongAdd});
  const uint64_t before = context->fences;
  ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
  EXPECT_EQ(context->fences, before);
  ASSERT_TRUE(completes(run(kLongAdd, kFirst, 1)));
  EXPECT_EQ(context->fences, before + 2);
}

TEST_F(LongEpochTest, ALongKernelDoesNotHoldOtherStreamsUpForLong) {
  runs_once({kWait, kLongAdd});
  context->pause(2);
  ASSERT_TRUE(handed_over(run(kWait, 0, 0, 2)));
  const uint64_t longer = run(kLongAdd, kFirst, 1);
  run(kWait, 0, 0, 2);
  EXPECT_TRUE(handed_over(longer));
  EXPECT_TRUE(is_unprotected());
  context->resume(2);
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_FALSE(is_unprotected());
}

TEST_F(LongEpochTest, AfterWorkThatCannotBeRunAgainTheNextIsProtected) {
  const uint64_t host = kTestBase + window.device_bytes - kSegmentBytes;
  map(9, host, protocol::SegmentKind::kHost);
  ASSERT_TRUE(completes(simple(protocol::RecordType::kNeed, 0, 9)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kLongAdd, host, 1)));
  EXPECT_TRUE(is_unprotected());
  const uint64_t longer = run(kLongAdd, kFirst, 1);
  context->resume(1);
  ASSERT_TRUE(completes(longer));
  hold_open(kLongWait);
  ASSERT_TRUE(handed_over(run(kLongAdd, kFirst, 1)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 2u);
}

}  // namespace
}  // namespace heddle::worker
