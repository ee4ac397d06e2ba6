#include "worker/lease.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

using protocol::ControlPage;
using protocol::Lease;
using State = protocol::Lease::State;

constexpr TimePoint ns(int64_t ns) {
  return TimePoint(Duration(ns));
}

struct WorkerLeaseTest : ::testing::Test {
  WorkerLeaseTest() {
    auto made = ControlPage::create();
    page = std::move(made->second);
    lease.emplace(std::move(*ControlPage::attach(made->first)));
  }
  ControlPage page;
  std::optional<WorkerLease> lease;
};

TEST_F(WorkerLeaseTest, WithoutLeasesNothingIsAskedAndNothingGoesBack) {
  EXPECT_FALSE(lease->exclusive());
  EXPECT_FALSE(lease->due(ns(5)));
}

TEST_F(WorkerLeaseTest, HoldsFromLendToWithdrawAndGoesBackOnce) {
  page.write_lease({.state = State::kWithdrawn});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_FALSE(lease->holds(ns(1)));
  EXPECT_FALSE(lease->due(ns(1))) << "it was never lent";
  page.write_lease({.state = State::kHeld, .generation = 1, .window_ns = 7});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_TRUE(lease->holds(ns(2)));
  EXPECT_EQ(lease->window(), Duration(7));
  EXPECT_FALSE(lease->due(ns(2)));
  page.write_lease({.state = State::kWithdrawn, .generation = 1});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_FALSE(lease->holds(ns(3)));
  ASSERT_EQ(lease->due(ns(3)), 1u);
  lease->returned();
  EXPECT_FALSE(lease->due(ns(4)));
  page.write_lease({.state = State::kHeld, .generation = 2});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_TRUE(lease->holds(ns(5)));
}

TEST_F(WorkerLeaseTest, EndsByItselfAndStaysEnded) {
  page.write_lease({.state = State::kHeld, .generation = 1, .until_ns = 100});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_EQ(lease->remaining(ns(40)), Duration(60));
  EXPECT_TRUE(lease->holds(ns(99)));
  EXPECT_FALSE(lease->holds(ns(100)));
  EXPECT_FALSE(lease->remaining(ns(101)));
  EXPECT_EQ(lease->due(ns(101)), 1u);
  lease->returned();
  EXPECT_FALSE(lease->holds(ns(50)));
}

TEST_F(WorkerLeaseTest, OneThatIsOverBeforeItIsSeenIsGoodForTheFirstAndNoMore) {
  page.write_lease({.state = State::kHeld, .generation = 1, .until_ns = 100});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_TRUE(lease->fresh());
  EXPECT_TRUE(lease->begins(ns(200)));
  EXPECT_FALSE(lease->fresh());
  EXPECT_FALSE(lease->begins(ns(201)));
  EXPECT_EQ(lease->due(ns(202)), 1u);
  page.write_lease({.state = State::kWithdrawn, .generation = 2, .until_ns = 300});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_FALSE(lease->begins(ns(250))) << "it was withdrawn before it was seen";
}

TEST_F(WorkerLeaseTest, OneThatIsOverAndNobodyWantsGoesBack) {
  page.write_lease({.state = State::kHeld, .generation = 1, .until_ns = 100});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_FALSE(lease->due(ns(99)));
  EXPECT_EQ(lease->due(ns(100)), 1u);
  EXPECT_FALSE(lease->begins(ns(100)));
}

TEST_F(WorkerLeaseTest, ABurstThatWouldNotEndInTimeIsNotBegun) {
  page.write_lease({.state = State::kHeld, .generation = 1, .until_ns = 100, .whole_bursts = true});
  ASSERT_TRUE(lease->exclusive());
  lease->begin_burst(ns(10), Duration(500));
  EXPECT_TRUE(lease->begins(ns(10))) << "the first one under a lease always is";
  lease->begin_burst(ns(30), Duration(60));
  EXPECT_TRUE(lease->holds(ns(30)));
  lease->begin_burst(ns(60), Duration(60));
  EXPECT_FALSE(lease->holds(ns(60)));
  EXPECT_EQ(lease->due(ns(60)), 1u);
}

// A worker that takes over has not been lent what its forerunner was.
TEST_F(WorkerLeaseTest, AWithdrawnLeaseOfAForerunnerIsGivenBackToo) {
  page.write_lease({.state = State::kWithdrawn, .generation = 4});
  ASSERT_TRUE(lease->exclusive());
  EXPECT_EQ(lease->due(ns(1)), 4u);
}

}  // namespace
}  // namespace heddle::worker
