#include <gtest/gtest.h>

#include "simulator/testing/crowd.h"

namespace heddle::simulator {
namespace {

constexpr Duration kCopyOf10GiB{894'784'853};  // at 12 GB/s

// A job that does nothing with its device for 20 s before each of its bursts, and another one that waits for its memory
// from 1.5 s on.
Scenario notebook() {
  Scenario made;
  made.policy = "schedgpu";
  made.age_limit = std::chrono::hours(1);
  made.swap.host = Bytes{64 * kGiB};
  made.revocation.resume = {};
  made.devices = {*device_preset("P100")};
  made.jobs.resize(2);
  for (JobLine& line : made.jobs) {
    line.shape.memory = Bytes{10 * kGiB};
    line.shape.need = {224, 256, 32, {}};
    line.shape.busy = std::chrono::seconds(1);
    line.shape.kernel = std::chrono::milliseconds(1);
  }
  made.jobs[0].shape.name = "notebook";
  made.jobs[0].shape.host = std::chrono::seconds(20);
  made.jobs[0].shape.bursts = 2;
  made.jobs[1].shape.name = "other";
  made.jobs[1].start = std::chrono::milliseconds(1500);
  return made;
}

// It is looked at when somebody begins to wait, and a second later.
TEST(IdleJobs, GiveWayAndComeBackWithTheirNextBurst) {
  const Outcome outcome = simulated(notebook());
  const JobOutcome &job = outcome.jobs[0], &other = outcome.jobs[1];
  expect_at(other.granted, std::chrono::milliseconds(2500) + kCopyOf10GiB);
  expect_at(other.ended, std::chrono::milliseconds(3500) + kCopyOf10GiB);
  expect_at(job.ended, std::chrono::seconds(20 + 1 + 20 + 1) + kCopyOf10GiB);
  EXPECT_EQ(job.waited, Duration{});
  EXPECT_EQ(job.swap.count, 1u);
  EXPECT_EQ(job.swap.moved, Bytes{20 * kGiB});
  EXPECT_NEAR(double(job.swap.moving.count()), 2 * double(kCopyOf10GiB.count()), 10);
  EXPECT_EQ(other.swap.count, 0u);
}

TEST(IdleJobs, ComeBackBehindAnotherWorkersStart) {
  Scenario node = notebook();
  node.revocation.resume = std::chrono::milliseconds(30);
  expect_at(simulated(node).jobs[0].ended, std::chrono::seconds(42) + kCopyOf10GiB + std::chrono::milliseconds(30));
}

TEST(IdleJobs, StayWhereThatIsSaidOrThereIsNoSpace) {
  Scenario node = notebook();
  node.swap.idle = {};
  EXPECT_EQ(simulated(node).swap().count, 0u);
  node = notebook();
  node.swap.host = {};
  EXPECT_EQ(simulated(node).swap().count, 0u);
  node.swap.host = Bytes{10 * kGiB - 1};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.swap().count, 0u);
  EXPECT_EQ(outcome.jobs[1].granted, TimePoint{std::chrono::seconds(42)});
}

TEST(IdleJobs, StayWhereNobodyWaits) {
  Scenario node = notebook();
  node.jobs[1].shape.memory = Bytes{6 * kGiB};
  EXPECT_EQ(simulated(node).swap().count, 0u);
}

TEST(IdleJobs, StayWhereThatWouldHelpNobody) {
  Scenario node = notebook();
  node.jobs.push_back(node.jobs[1]);
  node.jobs[1].start = {};
  node.jobs[1].shape.memory = Bytes{6 * kGiB};
  node.jobs[1].shape.busy = std::chrono::seconds(10);
  node.jobs[2].shape.memory = Bytes{12 * kGiB};
  const Outcome outcome = simulated(node);
  EXPECT_GT(outcome.jobs[2].granted, TimePoint{std::chrono::seconds(10)});
}

TEST(IdleJobs, AreIdleAsLongAsIsSaid) {
  Scenario node = notebook();
  node.swap.idle = std::chrono::seconds(3);
  expect_at(simulated(node).jobs[1].granted, std::chrono::milliseconds(4500) + kCopyOf10GiB);
}

// At 2.8 s, 0.3 s after the copy has begun.
TEST(IdleJobs, GoOnWhereTheyAreIfTheirBurstBeginsBeforeTheyHaveLeft) {
  Scenario node = notebook();
  node.jobs[0].shape.host = std::chrono::milliseconds(2800);
  node.jobs[0].shape.bursts = 1;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[0].ended, TimePoint{std::chrono::milliseconds(3800)});
  EXPECT_EQ(outcome.jobs[0].swap.count, 0u);
  EXPECT_EQ(outcome.jobs[0].swap.moving, std::chrono::milliseconds(300));
  EXPECT_EQ(outcome.jobs[1].granted, TimePoint{std::chrono::milliseconds(3800)});
}

TEST(IdleJobs, WaitForTheirDeviceAsOthersDo) {
  Scenario node = notebook();
  node.jobs[1].shape.busy = std::chrono::seconds(30);
  const Outcome outcome = simulated(node);
  const Duration until = std::chrono::milliseconds(2500) + kCopyOf10GiB + std::chrono::seconds(30);
  EXPECT_NEAR(double(outcome.jobs[0].waited.count()), double((until - std::chrono::seconds(20)).count()), 10);
  expect_at(outcome.jobs[0].ended, until + kCopyOf10GiB + std::chrono::seconds(1 + 20 + 1));
  node.horizon = std::chrono::seconds(25);
  EXPECT_EQ(simulated(node).jobs[0].waited, std::chrono::seconds(5));
}

// Its swap space is free for the next time: not before it was there for ten times as long as its copies took, 17.9 s.
TEST(IdleJobs, GiveSwapSpaceBackWhenTheyHaveCopiedTheirMemory) {
  Scenario node = notebook();
  node.swap.host = Bytes{10 * kGiB};
  node.jobs[0].shape.bursts = 3;
  JobLine& again = node.jobs.emplace_back(node.jobs[1]);
  again.start = std::chrono::seconds(23);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[0].swap.count, 2u);
  // It came back after 20 s, and is looked at once a second.
  expect_at(outcome.jobs[2].granted, std::chrono::seconds(39) + kCopyOf10GiB);
}

// Six of its ten GiB are on the device when it leaves, and all of them when it comes back.
TEST(IdleJobs, ComeBackWithAllOfTheirMemoryOnADevice) {
  Scenario node = notebook();
  node.eager_launch = true;
  node.jobs[1].shape.memory = Bytes{6 * kGiB};
  JobLine full = node.jobs[1];
  full.start = {};
  full.shape.name = "full";
  full.shape.memory = Bytes{10 * kGiB};
  full.shape.busy = std::chrono::seconds(100);
  node.jobs.insert(node.jobs.begin(), full);
  node.jobs[1].start = std::chrono::milliseconds(1);
  node.jobs[1].shape.bursts = 1;
  node.jobs[1].shape.buffers = {{Bytes{6 * kGiB}}, {Bytes{4 * kGiB}}};
  const Outcome outcome = simulated(node);
  const JobOutcome& job = outcome.jobs[1];
  EXPECT_EQ(job.eager.on_host, Bytes{4 * kGiB});
  EXPECT_EQ(job.eager.promotions, 0u);
  EXPECT_EQ(job.swap.count, 1u);
  EXPECT_EQ(job.swap.moved, Bytes{16 * kGiB});
  EXPECT_EQ(job.waited, std::chrono::milliseconds(80'000 - 1));
  expect_at(job.ended, std::chrono::seconds(101) + kCopyOf10GiB);
}

// Jobs that are often idle.
Scenario idle_jobs(const char* policy, const char* dispatch, uint32_t seed) {
  Scenario node = crowd(policy, dispatch, seed, std::chrono::milliseconds(900));
  node.swap = {Bytes{20 * kGiB}, std::chrono::milliseconds(100)};
  return node;
}

class EveryIdleDispatch : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryIdleDispatch, EndsAllJobsAndDecidesTheSameAgain) {
  uint64_t swaps = 0;
  for (const char* policy : {"schedgpu", "mgb-warps", "grr", "sa"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed)
      swaps += simulated_and_replayed(idle_jobs(policy, GetParam(), seed)).swap().count;
  }
  EXPECT_GT(swaps, 0u);
}

INSTANTIATE_TEST_SUITE_P(Dispatch, EveryIdleDispatch,
                         ::testing::Values("open", "fs", "tfs", "las", "las:2", "token", "token:overlap"));

TEST(IdleJobs, EndUnderDeadlinePolicies) {
  uint64_t swaps = 0;
  for (const char* dispatch : {"priority:hard", "elastic:hard"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed)
      swaps += simulated_with_requests(idle_jobs("mgb-warps", dispatch, seed)).swap().count;
  }
  EXPECT_GT(swaps, 0u);
}

}  // namespace
}  // namespace heddle::simulator
