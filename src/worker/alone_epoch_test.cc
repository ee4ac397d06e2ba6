// A program that is alone on its device is not protected, until somebody comes.

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

using protocol::NeedsApart;

struct AloneEpochTest : EpochHarness {
  void SetUp() override {
    EpochHarness::SetUp();
    control_page.write_alone(true);
  }
  void somebody_comes() { control_page.write_alone(false); }
};

TEST_F(AloneEpochTest, NothingIsCopiedAside) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 7u);
  EXPECT_EQ(saves(), 0u);
}

TEST_F(AloneEpochTest, UnprotectedWorkIsToldAsSuch) {
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_TRUE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(commits());
  EXPECT_FALSE(is_unprotected());
}

TEST_F(AloneEpochTest, NextRecordIsProtectedWhenSomebodyHasCome) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 7)));
  somebody_comes();
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  EXPECT_FALSE(is_unprotected());
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
}

TEST_F(AloneEpochTest, NextRecordWaitsForUnprotectedWorkWhenSomebodyHasCome) {
  context->pause(1);
  const uint64_t first = run(kAdd, kFirst, 7);
  ASSERT_TRUE(handed_over(first));
  somebody_comes();
  const uint64_t second = run(kAdd, kSecond, 5);
  context->resume(1);
  ASSERT_TRUE(completes(second));
  EXPECT_EQ(control_page.log().affected, first) << "only the first could have been lost";
}

// It may wait for what follows.
TEST_F(AloneEpochTest, KernelThatDoesNotEndIsNotWaitedForForEver) {
  context->pause(2);
  ASSERT_TRUE(handed_over(run(kWait, 0, 0, 2)));
  somebody_comes();
  const uint64_t next = run(kAdd, kFirst, 1);
  ASSERT_TRUE(handed_over(next));
  EXPECT_TRUE(is_unprotected());
  context->resume(2);
  ASSERT_TRUE(commits());
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1)));
  EXPECT_FALSE(is_unprotected());
  context->resume(2);
}

TEST_F(AloneEpochTest, OpenEpochEndsAsEverWhenTheOthersLeave) {
  somebody_comes();
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  control_page.write_alone(true);
  const uint64_t more = run(kAdd, kFirst, 5);
  ASSERT_TRUE(handed_over(more));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 10u);
}

struct AloneGuardTest : AloneEpochTest {
  void SetUp() override {
    guarded = true;
    AloneEpochTest::SetUp();
    pinned_memory = std::move(*create_memfd("pinned", Bytes{kSegmentBytes}));
    map_same_memory(3, pinned(), pinned_memory, protocol::SegmentKind::kHost);
    ASSERT_TRUE(completes(simple(protocol::RecordType::kNeed, 0, 3)));
  }
  // What kernels do there the program sees meanwhile: it cannot be run again.
  uint64_t pinned() const { return kTestBase + window.device_bytes; }

  Fd pinned_memory;
};

TEST_F(AloneGuardTest, WorkThatCannotBeRunAgainStaysUnderMps) {
  ASSERT_TRUE(completes(run(kAdd, pinned(), 5)));
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  EXPECT_EQ(told<NeedsApart>(), 0u);
}

// Behind it the task could never leave, whoever comes.
TEST_F(AloneGuardTest, DeviceMallocLeavesMpsAllTheSame) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  session.reset();
  module_info.allocates = true;
  kernel_effects[kAdd].allocates = true;
  start();
  const uint64_t kept = run(kAdd, kFirst, 5);
  ASSERT_TRUE(eventually([&] { return told<NeedsApart>() == 1; }));
  EXPECT_LT(control_page.log().handed_over, kept);
}

TEST_F(AloneGuardTest, WorkThatCannotBeRunAgainLeavesMpsWhenSomebodyHasCome) {
  ASSERT_TRUE(completes(run(kAdd, pinned(), 5)));
  somebody_comes();
  const uint64_t kept = run(kAdd, pinned(), 5);
  ASSERT_TRUE(eventually([&] { return told<NeedsApart>() == 1; }));
  EXPECT_LT(control_page.log().handed_over, kept);
}

}  // namespace
}  // namespace heddle::worker
