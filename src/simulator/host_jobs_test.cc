#include <gtest/gtest.h>

#include "simulator/testing/crowd.h"

namespace heddle::simulator {
namespace {

using std::chrono::seconds;

// Jobs on a device each, of which each makes its input for 4 s, computes for 1 s, and checks the result for 2 s.
Scenario programs(uint32_t count, uint32_t processors) {
  Scenario made;
  made.processors = processors;
  made.devices.assign(count, *device_preset("P100"));
  JobLine& line = made.jobs.emplace_back();
  line.count = count;
  line.shape.before = seconds(4);
  line.shape.busy = seconds(1);
  line.shape.behind = seconds(2);
  return made;
}

TEST(HostJobs, ComputeBeforeTheirFirstTaskAndBehindTheirLast) {
  Scenario node = programs(1, 0);
  node.jobs[0].shape.tasks = 2;
  const JobOutcome job = simulated(node).jobs[0];
  expect_at(job.granted, seconds(4));
  expect_at(job.ended, seconds(4 + 1 + 1 + 2));
  EXPECT_EQ(job.turnaround, seconds(8));
  EXPECT_EQ(job.runs, 1u);
}

TEST(HostJobs, HaveAProcessorEachWhereNothingIsSaid) {
  for (const JobOutcome& job : simulated(programs(4, 0)).jobs) expect_at(job.ended, seconds(7));
}

TEST(HostJobs, ShareTheProcessorsThatThereAre) {
  for (const JobOutcome& job : simulated(programs(4, 2)).jobs) {
    expect_at(job.granted, seconds(8));
    expect_at(job.ended, seconds(8 + 1 + 4));
  }
}

TEST(HostJobs, ShareThemBetweenBurstsToo) {
  Scenario node = programs(2, 1);
  JobShape& shape = node.jobs[0].shape;
  shape.before = shape.behind = {};
  shape.host = seconds(3);
  shape.bursts = 2;
  for (const JobOutcome& job : simulated(node).jobs) expect_at(job.ended, seconds(6 + 1 + 6 + 1));
}

// What is on the host is not on a device, and keeps none from others.
TEST(HostJobs, HaveNoDeviceBeforeTheirTask) {
  Scenario node = programs(2, 0);
  node.devices.resize(1);
  node.policy = "sa";
  node.jobs[0].every = seconds(3);
  const Outcome outcome = simulated(node);
  expect_at(outcome.jobs[0].ended, seconds(7));
  expect_at(outcome.jobs[1].granted, seconds(7));  // its input is there by then, and the device has been free since 5 s
}

TEST(HostJobs, AreCutOffAtTheHorizon) {
  Scenario node = programs(1, 1);
  for (const int64_t horizon : {3, 6}) {
    node.horizon = seconds(horizon);
    EXPECT_FALSE(simulated(node).jobs[0].ended);
  }
}

// With as many processors as there are jobs nobody waits for one, and all comes at the same times as without a limit.
TEST(HostJobs, WithProcessorsForAllNothingChanges) {
  Scenario node = crowd("mgb-warps", "fs", 1, std::chrono::milliseconds(20));
  const Outcome free = simulated(node);
  node.processors = 30;
  const Outcome limited = simulated(node);
  EXPECT_EQ(free.makespan, limited.makespan);
  node.processors = 1;
  EXPECT_GT(simulated(node).makespan, free.makespan);
}

}  // namespace
}  // namespace heddle::simulator
