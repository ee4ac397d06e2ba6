#include <gmock/gmock.h>

#include "simulator/testing/crowd.h"

namespace heddle::simulator {
namespace {

using ::testing::HasSubstr;
using ::testing::Ne;

constexpr std::chrono::milliseconds kSecond{1000};
constexpr Duration kCopyOf7GiB{626'349'397};  // at 12 GB/s

// Two jobs that together have 14 of 16 GiB, and ask for 4 more each before their only burst, the first at 1 s, the
// second at 1.1 s.
Scenario growing() {
  Scenario made;
  made.policy = "schedgpu";
  made.age_limit = std::chrono::hours(1);
  made.swap = {Bytes{64 * kGiB}, Duration{}};
  made.revocation.resume = {};
  made.devices = {*device_preset("P100")};
  made.jobs.resize(2);
  for (JobLine& line : made.jobs) {
    line.shape.memory = Bytes{7 * kGiB};
    line.shape.more = Bytes{4 * kGiB};
    line.shape.need = {224, 256, 32, {}};
    line.shape.host = kSecond;
    line.shape.busy = kSecond;
    line.shape.kernel = std::chrono::milliseconds(1);
  }
  made.jobs[0].shape.name = "elder";
  made.jobs[1].shape.name = "younger";
  made.jobs[1].start = std::chrono::milliseconds(100);
  return made;
}

TEST(GrowingJobs, HaveWhatTheyAskForFromThatBurstOn) {
  Scenario node = growing();
  node.jobs[0].shape.bursts = 3;
  node.jobs[0].shape.more_at = 2;
  node.jobs[1].shape.more = {};
  const Outcome before = simulated(node);
  EXPECT_EQ(before.jobs[1].waited, Duration{});
  EXPECT_EQ(before.jobs[0].waited, Duration{});  // the other one has ended by then
  node.jobs[1].start = 7 * kSecond / 2;          // in its second burst
  const Outcome behind = simulated(node);
  expect_at(behind.jobs[1].granted, 6 * kSecond);
  expect_at(behind.jobs[0].ended, 6 * kSecond);
}

TEST(GrowingJobs, WaitForMemoryThatOthersGiveBack) {
  Scenario node = growing();
  node.jobs[1].shape.more = {};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[0].waited, kSecond + std::chrono::milliseconds(100));
  expect_at(outcome.jobs[0].ended, 3 * kSecond + std::chrono::milliseconds(100));
  EXPECT_EQ(outcome.swap().count, 0u);
}

TEST(GrowingJobs, AskBetweenBurstsThatAreOneOtherwise) {
  Scenario node = growing();
  node.jobs[0].shape.host = node.jobs[1].shape.host = {};
  node.jobs[0].shape.bursts = 3;
  node.jobs[0].shape.more_at = 2;
  node.jobs[1].shape.more = {};
  node.jobs[1].shape.need.blocks = node.jobs[0].shape.need.blocks = 1;
  node.jobs[1].shape.busy = 2 * kSecond;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[0].waited, kSecond + std::chrono::milliseconds(100));
  expect_at(outcome.jobs[0].ended, 4 * kSecond + std::chrono::milliseconds(100));
}

TEST(GrowingJobs, LeaveADeadlockTheYoungestFirst) {
  const Outcome outcome = simulated(growing());
  const JobOutcome &elder = outcome.jobs[0], &younger = outcome.jobs[1];
  EXPECT_EQ(elder.swap.count, 0u);
  expect_at(elder.ended, std::chrono::milliseconds(2100) + kCopyOf7GiB);
  EXPECT_EQ(younger.swap.count, 1u);
  EXPECT_EQ(younger.swap.deadlocks, 1u);
  EXPECT_EQ(younger.swap.moved, Bytes{14 * kGiB});
  expect_at(younger.ended, std::chrono::milliseconds(3100) + 2 * kCopyOf7GiB);
  EXPECT_NEAR(double(younger.waited.count()), double((kSecond + kCopyOf7GiB).count()), 10);
}

TEST(GrowingJobs, AreRefusedTheYoungestFirstWhereSwapSpaceHasNoPlace) {
  for (const Bytes space : {Bytes{}, Bytes{6 * kGiB}}) {
    Scenario node = growing();
    node.swap.host = space;
    const Outcome outcome = simulated(node);
    expect_at(outcome.jobs[0].ended, std::chrono::milliseconds(2100));
    EXPECT_THAT(outcome.jobs[1].refused, HasSubstr("waiting could never end"));
    EXPECT_EQ(outcome.jobs[1].runs, 0u);
    EXPECT_EQ(outcome.swap().count, 0u);
  }
}

TEST(GrowingJobs, AreRefusedWhatNoDeviceCouldHold) {
  Scenario node = growing();
  node.jobs[0].shape.more = Bytes{14 * kGiB};
  const Outcome outcome = simulated(node);
  EXPECT_THAT(outcome.jobs[0].refused, Ne(""));
  EXPECT_EQ(outcome.jobs[0].waited, Duration{});
  expect_at(outcome.jobs[1].ended, std::chrono::milliseconds(2100));
}

TEST(GrowingJobs, ThatAreIdleAskWhenTheyComeBack) {
  Scenario node = growing();
  node.swap.idle = kSecond;
  node.jobs[0].shape.host = 20 * kSecond;
  node.jobs[1].shape.memory = Bytes{10 * kGiB};
  node.jobs[1].shape.more = {};
  node.jobs[1].start = std::chrono::milliseconds(1500);
  const Outcome outcome = simulated(node);
  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.swap.count, 1u);
  EXPECT_EQ(job.swap.deadlocks, 0u);
  EXPECT_EQ(job.swap.moved, Bytes{14 * kGiB});
  expect_at(job.ended, 21 * kSecond + kCopyOf7GiB);
}

// Many that grow in their middle; some are idle meanwhile.
Scenario growing_jobs(const char* policy, const char* dispatch, uint32_t seed) {
  Scenario node = crowd(policy, dispatch, seed, std::chrono::milliseconds(300));
  node.swap = {Bytes{200 * kGiB}, std::chrono::milliseconds(seed % 3 * 100)};
  for (uint32_t kind = 0; kind < node.jobs.size(); ++kind) {
    node.jobs[kind].shape.more = Bytes{4 * kGiB};
    node.jobs[kind].shape.more_at = kind + 1;
  }
  return node;
}

class EveryGrowingDispatch : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryGrowingDispatch, EndsAllJobsAndDecidesTheSameAgain) {
  uint64_t deadlocks = 0;
  for (const char* policy : {"schedgpu", "mgb-warps", "grr", "sa"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed)
      deadlocks += simulated_and_replayed(growing_jobs(policy, GetParam(), seed)).swap().deadlocks;
  }
  EXPECT_GT(deadlocks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Dispatch, EveryGrowingDispatch,
                         ::testing::Values("open", "fs", "tfs", "las", "token", "token:overlap"));

TEST(GrowingJobs, EndUnderDeadlinePolicies) {
  uint64_t deadlocks = 0;
  for (const char* dispatch : {"priority:hard", "elastic:hard"}) {
    for (uint32_t seed = 1; seed <= 4; ++seed)
      deadlocks += simulated_with_requests(growing_jobs("mgb-warps", dispatch, seed)).swap().deadlocks;
  }
  EXPECT_GT(deadlocks, 0u);
}

// Little swap space: who cannot leave is refused, and nobody waits for ever.
TEST(GrowingJobs, EndOrAreRefusedWithLittleSwapSpace) {
  uint64_t refused = 0, deadlocks = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Scenario node = growing_jobs("mgb-warps", "fs", seed);
    node.swap.host = Bytes{8 * kGiB};
    const Outcome outcome = simulated(node);
    for (const JobOutcome& job : outcome.jobs) {
      EXPECT_EQ(job.runs, job.refused.empty() ? 1u : 0u) << job.name << ", seed " << seed;
      refused += job.refused.empty() ? 0 : 1;
    }
    deadlocks += outcome.swap().deadlocks;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(deadlocks, 0u);
}

}  // namespace
}  // namespace heddle::simulator
