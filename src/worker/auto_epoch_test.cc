// Where copies may take a share of a program's time only: what is protected while there is time left, and what then.

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

struct AutoEpochTest : EpochHarness {
  void SetUp() override {
    save_permille = 1;
    EpochHarness::SetUp();
  }
  // The first copies are made, and from then on it is known that they take longer than is ever saved up.
  void spend_all() {
    context->mib_takes = std::chrono::seconds(1);
    ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
    ASSERT_TRUE(completes(marker(1)));
    ASSERT_GT(saves(), 0u);
    ASSERT_TRUE(commits());
  }
};

TEST_F(AutoEpochTest, WhileThereIsTimeAllIsRunAgain) {
  hold_open();
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
}

TEST_F(AutoEpochTest, WithoutTimeLeftWhatWantsACopyGoesWithoutProtection) {
  ASSERT_NO_FATAL_FAILURE(spend_all());
  const uint64_t sum = at(kFirst);
  const size_t saved = saves();
  context->pause(1);
  const uint64_t added = run(kAdd, kFirst, 1);
  ASSERT_TRUE(handed_over(added));
  EXPECT_TRUE(is_unprotected());
  context->resume(1);
  ASSERT_TRUE(completes(added));
  EXPECT_FALSE(is_unprotected());
  EXPECT_EQ(at(kFirst), sum + 1);
  EXPECT_EQ(saves(), saved);
}

TEST_F(AutoEpochTest, HowMuchOfTheTimeWasWithoutProtectionIsTold) {
  ASSERT_TRUE(completes(run(kLongAdd, kSecond, 1)));
  EXPECT_TRUE(eventually([&] { return usage().busy_ns > 0; }));
  EXPECT_EQ(usage().unprotected_ns, 0u);
  ASSERT_NO_FATAL_FAILURE(spend_all());
  ASSERT_TRUE(completes(run(kLongAdd, kFirst, 1)));
  EXPECT_TRUE(eventually([&] { return usage().unprotected_ns > 0; }));
  EXPECT_LE(usage().unprotected_ns, usage().busy_ns);
}

TEST_F(AutoEpochTest, WithoutTimeLeftWhatWantsNoCopyIsRunAgain) {
  ASSERT_NO_FATAL_FAILURE(spend_all());
  const uint64_t sum = at(kFirst);
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kSecond)));
  EXPECT_FALSE(is_unprotected());
  dies_and_next_finishes();
  EXPECT_EQ(at(kSecond), sum + 1);
}

}  // namespace
}  // namespace heddle::worker
