#include <gmock/gmock.h>

#include "simulator/testing/simulated.h"

namespace heddle::simulator {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Duration millis(int64_t count) {
  return std::chrono::milliseconds(count);
}

// A P100 has 16 GiB and 3584 warps; 448 blocks of 256 threads fill it.
Scenario scenario(size_t devices, const char* policy = "mgb-warps", const char* dispatch = "open") {
  Scenario made;
  made.policy = policy;
  made.dispatch = dispatch;
  made.devices.assign(devices, *device_preset("P100"));
  return made;
}

JobLine jobs(uint32_t count, uint32_t bursts, Duration busy, Duration host = {}, uint32_t blocks = 448) {
  JobLine line;
  line.count = count;
  line.shape.name = line.shape.app = "job";
  line.shape.memory = Bytes{kGiB};
  line.shape.need = {blocks, 256, 32, {}};
  line.shape.bursts = bursts;
  line.shape.busy = busy;
  line.shape.kernel = millis(1);
  line.shape.host = host;
  return line;
}

TEST(World, OneJobTakesItsHostAndItsBusyTime) {
  Scenario node = scenario(1);
  node.jobs = {jobs(1, 10, millis(20), millis(5))};
  node.jobs[0].shape.copy = millis(2);
  node.jobs[0].shape.tasks = 3;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.makespan, millis(3 * 10 * 27));
  EXPECT_EQ(outcome.jobs[0].busy, millis(3 * 10 * 20));
  EXPECT_EQ(outcome.busy[0], millis(600));
  EXPECT_EQ(outcome.jobs[0].waited, millis(0));
  EXPECT_EQ(outcome.completed(), 1u);
}

TEST(World, JobsThatDoNotFitWaitForMemory) {
  Scenario node = scenario(1, "schedgpu");
  node.jobs = {jobs(3, 1, millis(100))};
  node.jobs[0].shape.memory = Bytes{10 * kGiB};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.makespan, millis(300));
  EXPECT_EQ(outcome.jobs[1].waited, millis(100));
  EXPECT_EQ(outcome.jobs[2].waited, millis(200));
}

TEST(World, WhatCouldNeverFitIsRefusedAndSaysWhy) {
  Scenario node = scenario(1);
  node.jobs = {jobs(1, 1, millis(1))};
  node.jobs[0].shape.memory = Bytes{17 * kGiB};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.completed(), 0u);
  EXPECT_THAT(outcome.jobs[0].refused, HasSubstr("17"));
}

TEST(World, PlacementSpreadsJobsOverDevices) {
  Scenario node = scenario(4);
  node.jobs = {jobs(4, 10, millis(10))};
  EXPECT_EQ(simulated(node).makespan, millis(100));
}

TEST(World, AsManyJobsRunAtOnceAsThereAreWorkers) {
  Scenario node = scenario(4);
  node.workers.most = 2;
  node.jobs = {jobs(4, 10, millis(10))};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.makespan, millis(200));
  EXPECT_EQ(outcome.jobs[3].arrived, TimePoint{});
  EXPECT_EQ(outcome.jobs[3].granted, TimePoint{millis(100)});
}

// Ten jobs on one device, which hold it for a tenth of their time: five first, and more when that is known. All of them
// would wait if they were counted by their warps.
TEST(World, AutoStartsMoreJobsThatAreMostlyOnTheHost) {
  Scenario node = scenario(1);
  node.workers.automatic = true;
  node.jobs = {jobs(10, 50, millis(10), millis(90))};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.completed(), 10u);
  EXPECT_EQ(outcome.most_at_once, 10u);
  EXPECT_EQ(outcome.jobs[4].granted, TimePoint{});
  EXPECT_EQ(outcome.jobs[5].granted, TimePoint{millis(250)});
  node.jobs = {jobs(10, 50, millis(100))};
  EXPECT_EQ(simulated(node).most_at_once, 5u);
}

// Six jobs have space on the two devices, and eight wait.
TEST(World, AutoStartsFewThatWouldWait) {
  Scenario node = scenario(2);
  node.workers.automatic = true;
  node.jobs = {jobs(40, 20, millis(10), millis(10))};
  node.jobs[0].shape.memory = Bytes{5 * kGiB};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.completed(), 40u);
  EXPECT_EQ(outcome.most_at_once, 14u);
}

TEST(World, AutoTakesJobsAsTheyArriveAndRepeat) {
  Scenario node = scenario(1);
  node.workers.automatic = true;
  node.horizon = std::chrono::seconds(20);
  node.jobs = {jobs(8, 10, millis(10), millis(10), 100)};
  node.jobs[0].every = std::chrono::seconds(2);
  node.jobs[0].repeats = true;
  const Outcome outcome = simulated(node);
  EXPECT_THAT(outcome.jobs, Each(Field(&JobOutcome::runs, testing::Ge(5u))));
  EXPECT_EQ(outcome.most_at_once, 8u);
}

// The goal is 5 % (docs/results/2026-11-24-workers.md); in virtual time there is no noise.
class AutoWorkers : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(AutoWorkers, AreWithinATenthOfTheBestNumber) {
  const auto [policy, dispatch] = GetParam();
  Scenario host_bound = scenario(2, policy, dispatch), memory_bound = host_bound, device_bound = host_bound;
  host_bound.jobs = {jobs(40, 120, millis(10), millis(120)), jobs(8, 60, millis(40), millis(160), 200)};
  memory_bound.jobs = {jobs(10, 40, millis(40), millis(60), 300), jobs(20, 30, millis(20), millis(80), 100)};
  memory_bound.jobs[0].shape.memory = Bytes{9 * kGiB};
  memory_bound.jobs[1].shape.memory = Bytes{4 * kGiB};
  device_bound.jobs = {jobs(20, 50, millis(90), millis(5)), jobs(12, 100, millis(20))};
  for (Scenario node : {host_bound, memory_bound, device_bound}) {
    Duration best = Duration::max();
    for (const uint32_t number : {1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 48}) {
      node.workers = {number};
      best = std::min(best, simulated(node).makespan);
    }
    node.workers = {.automatic = true};
    const Outcome outcome = simulated(node);
    EXPECT_LE(double(outcome.makespan.count()), 1.1 * double(best.count()))
        << "at most " << outcome.most_at_once << " ran at once";
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, AutoWorkers,
                         ::testing::Values(std::pair("mgb-warps", "open"), std::pair("mgb-sm", "open"),
                                           std::pair("schedgpu", "fs")));

// The first runs for 400 ms beyond the horizon, the second waits for it, the third comes too late.
TEST(World, WhatWaitsAtTheHorizonHasWaitedUpToIt) {
  Scenario node = scenario(1, "schedgpu");
  node.horizon = millis(600);
  node.jobs = {jobs(3, 1, millis(1000))};
  node.jobs[0].shape.memory = Bytes{10 * kGiB};
  node.jobs[0].every = millis(350);
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.jobs[0].granted, TimePoint{});
  EXPECT_EQ(outcome.jobs[0].waited, millis(0));
  EXPECT_EQ(outcome.jobs[0].ended, std::nullopt);
  EXPECT_EQ(outcome.jobs[0].busy, millis(600));
  EXPECT_EQ(outcome.jobs[1].granted, std::nullopt);
  EXPECT_EQ(outcome.jobs[1].waited, millis(250));
  EXPECT_EQ(outcome.jobs[2].granted, std::nullopt);
  EXPECT_EQ(outcome.jobs[2].waited, millis(0));
}

// Two tasks of a job, then one that is still there at the horizon.
TEST(World, TimelineShowsStaysAndKernels) {
  Scenario node = scenario(1, "schedgpu");
  node.horizon = millis(500);
  node.jobs = {jobs(1, 1, millis(100), millis(50)), jobs(1, 1, millis(1000))};
  node.jobs[0].shape.tasks = 2;
  for (JobLine& line : node.jobs) line.shape.memory = Bytes{10 * kGiB};
  Timeline timeline;
  ASSERT_TRUE(World::run(node, nullptr, &timeline));
  std::vector<std::string> shown;
  const auto ms_of = [](TimePoint at) { return std::to_string(at.time_since_epoch() / millis(1)); };
  for (const auto& stay : timeline.stays)
    shown.push_back(std::to_string(stay.job) + ": " + ms_of(stay.arrived) + " " + ms_of(stay.granted) + " " +
                    ms_of(stay.ended));
  for (const auto& use : timeline.uses)
    shown.push_back(std::to_string(use.job) + " busy " + ms_of(use.begin) + " " + ms_of(use.end));
  EXPECT_THAT(shown, ::testing::ElementsAre("0: 0 0 150", "1: 0 150 500", "0 busy 50 150", "1 busy 150 500"));
}

TEST(World, StartIsTheFirstTasksGrant) {
  Scenario node = scenario(1);
  node.jobs = {jobs(1, 1, millis(100))};
  node.jobs[0].shape.tasks = 3;
  EXPECT_EQ(simulated(node).jobs[0].granted, TimePoint{});
}

TEST(World, TurnaroundIsOfEachRun) {
  Scenario node = scenario(1);
  node.horizon = millis(1050);
  node.jobs = {jobs(1, 1, millis(100))};
  node.jobs[0].repeats = true;
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.completed(), 10u);
  EXPECT_EQ(outcome.mean_turnaround(), millis(100));
}

// Every dispatch policy: all work is done, nothing is lost by taking the device back, and no job is left behind.
class EveryDispatch : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryDispatch, CompletesAllWork) {
  Scenario node = scenario(2, "schedgpu", GetParam());
  node.jobs = {jobs(3, 40, millis(7), millis(3)), jobs(2, 5, millis(150)), jobs(3, 100, millis(1), millis(1))};
  const Outcome outcome = simulated(node);
  EXPECT_EQ(outcome.completed(), 8u);
  EXPECT_THAT(outcome.jobs, Each(Field(&JobOutcome::refused, IsEmpty())));
  Duration least{};
  for (const JobLine& line : node.jobs) least += line.count * line.shape.bursts * line.shape.busy;
  Duration busy{};
  for (const JobOutcome& job : outcome.jobs) busy += job.busy;
  if (const std::string_view dispatch = GetParam();
      dispatch != "open" && dispatch != "token:overlap" && dispatch != "las:2") {
    // One at a time: busy time is the work itself, to the rounding of each end.
    EXPECT_NEAR(double(busy.count()), double(least.count()), 1e5);
    EXPECT_LE(outcome.busy[0] + outcome.busy[1], least + millis(1));
  }
}

TEST_P(EveryDispatch, IsRepeatable) {
  Scenario node = scenario(2, "mgb-warps", GetParam());
  node.jobs = {jobs(20, 10, millis(7), millis(3))};
  node.jobs[0].every = millis(20);
  node.jobs[0].random = true;
  const Outcome once = simulated(node), again = simulated(node);
  EXPECT_EQ(once.makespan, again.makespan);
  EXPECT_EQ(once.events, again.events);
  node.seed = 2;
  EXPECT_NE(simulated(node).makespan, once.makespan);
}

INSTANTIATE_TEST_SUITE_P(Dispatch, EveryDispatch,
                         ::testing::Values("open", "fs", "tfs", "las", "las:2", "token", "token:overlap"));

TEST(Shares, FollowWeightsUnderTrueFairShare) {
  Scenario node = scenario(1, "schedgpu", "tfs");
  node.horizon = std::chrono::seconds(20);
  node.jobs = {jobs(1, 1000, millis(10), millis(1)), jobs(1, 1000, millis(10), millis(1))};
  node.jobs[0].shape.weight = 3;
  for (JobLine& line : node.jobs) line.repeats = true;
  const Outcome outcome = simulated(node);
  EXPECT_GT(jain_index(outcome, {3, 1}), 0.99);
}

TEST(Shares, AreHeldByTokensAndIdleOnesGivenAway) {
  Scenario node = scenario(1, "schedgpu", "token");
  node.horizon = std::chrono::seconds(40);
  node.jobs = {jobs(1, 10'000, millis(10)), jobs(1, 10'000, millis(10))};
  node.jobs[0].shape.request = 0.7;
  node.jobs[1].shape.request = 0.3;
  for (JobLine& line : node.jobs) line.repeats = true;
  const Outcome both = simulated(node);
  EXPECT_NEAR(double(both.jobs[0].busy.count()) / 40e9, 0.7, 0.02);
  EXPECT_NEAR(double(both.jobs[1].busy.count()) / 40e9, 0.3, 0.02);
  node.jobs.pop_back();
  EXPECT_GT(double(simulated(node).jobs[0].busy.count()) / 40e9, 0.95);
}

// One has kernels of a second, the other of a millisecond; there is space for both at a time.
TEST(Shares, OverlapWhereTokensDo) {
  const auto had = [](const char* dispatch) {
    Scenario node = scenario(1, "schedgpu", dispatch);
    node.horizon = std::chrono::seconds(20);
    node.jobs = {jobs(1, 10'000, millis(1000), {}, 100), jobs(1, 100'000, millis(1), {}, 100)};
    node.jobs[0].shape.kernel = millis(1000);
    const Outcome outcome = simulated(node);
    return std::pair(outcome.jobs[0].busy + outcome.jobs[1].busy, outcome.busy[0]);
  };
  const auto [of_jobs, of_device] = had("token");
  EXPECT_NEAR(double(of_jobs.count()), double(of_device.count()), 1e6);
  const auto [of_jobs_overlapping, of_device_overlapping] = had("token:overlap");
  EXPECT_GT(of_jobs_overlapping, of_device_overlapping + std::chrono::seconds(1));
}

// Nine tenths of one's time on the device are copies.
TEST(Shares, CountCopies) {
  Scenario node = scenario(1, "schedgpu", "tfs");
  node.horizon = std::chrono::seconds(20);
  node.jobs = {jobs(1, 10'000, millis(1)), jobs(1, 10'000, millis(10))};
  node.jobs[0].shape.copy = millis(9);
  const Outcome outcome = simulated(node);
  EXPECT_NEAR(double(outcome.jobs[0].busy.count()) / double(outcome.jobs[1].busy.count()), 0.1, 0.01);
}

// One of two devices is three times as slow: who knows how long jobs take gives it fewer.
TEST(World, BalancersThatLearnKnowASlowDevice) {
  Scenario node = scenario(2, "grr");
  node.devices[1].slowdown = 3;
  node.jobs = {jobs(40, 10, millis(20))};
  node.jobs[0].every = millis(110);
  const Outcome blind = simulated(node);
  node.policy = "rtf";
  const Outcome learned = simulated(node);
  EXPECT_LT(learned.mean_turnaround(), blind.mean_turnaround());
  EXPECT_EQ(learned.completed(), 40u);
}

TEST(World, WhatItDoesNotKnowIsSaid) {
  Scenario node = scenario(1, "fifo");
  node.jobs = {jobs(1, 1, millis(1))};
  EXPECT_THAT(World::run(node).error().text, HasSubstr("fifo"));
  node.policy = "sa";
  node.dispatch = "fair";
  EXPECT_THAT(World::run(node).error().text, HasSubstr("fair"));
  node.dispatch = "fs";
  node.jobs[0].shape.model = "V100";
  EXPECT_THAT(World::run(node).error().text, HasSubstr("V100"));
}

TEST(World, ArrivalsBeyondTheClockAreRefused) {
  for (const bool random : {false, true}) {
    Scenario node = scenario(1);
    node.jobs = {jobs(1000, 1, millis(1))};
    node.jobs[0].every = std::chrono::hours(24 * 365);
    node.jobs[0].random = random;
    const auto outcome = World::run(node);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().text, HasSubstr("of 1000 would arrive after more than 100 years"));
    node.jobs[0].every = std::chrono::hours(24 * 365 * 290);
    EXPECT_FALSE(World::run(node));
    node.jobs[0].every = std::chrono::hours(1);
    EXPECT_TRUE(World::run(node));
  }
}

}  // namespace
}  // namespace heddle::simulator
