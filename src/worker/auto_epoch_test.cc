// Where copies may take a share of a program's time only: what is protected while there is time left, and what then.

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

struct AutoEpochTest : EpochHarness {
  void SetUp() override {
    save_permille = 1;
    EpochHarness::SetUp();
  }
  void add_and_wait() {
    ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
    ASSERT_TRUE(completes(marker(1)));
  }
  // In an epoch each, until one of them is not saved.
  void spend_all() {
    for (size_t before = 0; before < saves();) {
      before = saves();
      add_and_wait();
      ASSERT_LT(before, 5000u) << "copies go on for ever";
    }
  }
};

TEST_F(AutoEpochTest, WhileThereIsTimeAllIsRunAgain) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

TEST_F(AutoEpochTest, WithoutTimeLeftWhatWantsACopyGoesWithoutProtection) {
  add_and_wait();
  ASSERT_GT(saves(), 0u);
  spend_all();
  const uint64_t sum = at(kFirst);
  context->pause(1);
  const uint64_t added = run(kAdd, kFirst, 1);
  ASSERT_TRUE(handed_over(added));
  EXPECT_TRUE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(added));
  EXPECT_FALSE(is_unprotected());
  EXPECT_EQ(at(kFirst), sum + 1);
}

TEST_F(AutoEpochTest, WithoutTimeLeftWhatWantsNoCopyIsRunAgain) {
  add_and_wait();
  spend_all();
  const uint64_t sum = at(kFirst);
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kSecond)));
  EXPECT_FALSE(is_unprotected());
  dies_and_next_finishes();
  EXPECT_EQ(at(kSecond), sum + 1);
}

}  // namespace
}  // namespace heddle::worker
