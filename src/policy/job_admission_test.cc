#include "policy/job_admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::policy {
namespace {

constexpr TimePoint at_millis(int64_t milliseconds) {
  return TimePoint{std::chrono::milliseconds(milliseconds)};
}
constexpr double ns(double milliseconds) {
  return milliseconds * 1e6;
}

// A batch with `running` jobs that have all had a task, at 10 s: none is starting.
JobAdmission batch_of(uint64_t running, AdmissionLimits limits = {}) {
  JobAdmission admission(limits);
  for (uint64_t job = 1; job <= running; ++job) {
    admission.started({job}, at_millis(0));
    admission.announced({job});
  }
  return admission;
}

// A P100 has 3,584 warps.
PoolUse pool_used(uint32_t devices, uint32_t tasks, uint64_t warps_each, uint32_t waiting = 0,
                  DeviceSharing sharing = DeviceSharing::kConcurrent) {
  return {devices, devices * uint64_t{3584}, tasks * warps_each, tasks, waiting, 0, sharing};
}

// Each task at work for `duty` of the time, in looks a quarter of a second apart up to `until`.
void look_until(JobAdmission& admission, PoolUse use, double duty, int64_t until) {
  for (int64_t at = 0; at <= until; at += 250) {
    use.busy_ns = ns(static_cast<double>(at) * use.tasks * duty);
    admission.look(use, at_millis(at));
  }
}

struct PoolCase {
  const char* what;
  PoolUse use;
  double duty;
  bool admits;
};

TEST(JobAdmission, StartsAnotherWhereTheDevicesHaveUseForIt) {
  const PoolCase cases[] = {
      {"nothing is there yet", pool_used(2, 0, 0), 1, true},
      {"fewer than five tasks a device, however large", pool_used(2, 9, 3584), 1, true},
      {"five that fill it each", pool_used(2, 10, 3584), 1, false},
      {"the same, but four fifths of the time on the host", pool_used(2, 10, 3584), 0.2, true},
      {"small ones, always at work: 4.9 devices' worth of warps", pool_used(1, 49, 358), 1, true},
      {"more of them: 5.1", pool_used(1, 51, 358), 1, false},
      {"three wait on one device", pool_used(1, 2, 3584, 3), 1, true},
      {"four wait", pool_used(1, 2, 3584, 4), 1, false},
      {"seven wait on two devices", pool_used(2, 2, 3584, 7), 1, true},
      {"time slices: warps do not count, 4.9 at work", pool_used(1, 49, 1, 0, DeviceSharing::kTimeSliced), 0.1, true},
      {"time slices: 5.1 at work", pool_used(1, 51, 1, 0, DeviceSharing::kTimeSliced), 0.1, false},
      {"lent to one at a time: nine tenths used", pool_used(1, 9, 1, 0, DeviceSharing::kLeased), 0.1, true},
      {"lent to one at a time: all of it used", pool_used(1, 10, 1, 0, DeviceSharing::kLeased), 0.1, false},
      {"lent, but fewer than five a device", pool_used(1, 4, 1, 0, DeviceSharing::kLeased), 0.25, true},
  };
  for (const PoolCase& each : cases) {
    SCOPED_TRACE(each.what);
    JobAdmission admission = batch_of(each.use.tasks + each.use.waiting);
    look_until(admission, each.use, each.duty, 10'000);
    EXPECT_EQ(admission.admits(at_millis(10'000)), each.admits);
  }
}

// What it measured first says nothing of jobs that came since.
TEST(JobAdmission, DutyFollowsWhatIsMeasured) {
  JobAdmission admission = batch_of(10);
  PoolUse use = pool_used(1, 10, 3584);
  look_until(admission, use, 0.1, 5'000);
  EXPECT_TRUE(admission.admits(at_millis(5'000)));
  use.busy_ns = ns(5'000);
  for (int64_t at = 6'000; at <= 9'000; at += 1'000) {
    use.busy_ns += ns(10'000);
    admission.look(use, at_millis(at));
  }
  EXPECT_FALSE(admission.admits(at_millis(9'000)));
}

TEST(JobAdmission, TasksCountAsAlwaysAtWorkUntilItIsMeasured) {
  JobAdmission admission = batch_of(5);
  admission.look(pool_used(1, 5, 3584), at_millis(0));
  EXPECT_FALSE(admission.admits(at_millis(0)));
  EXPECT_EQ(admission.next(at_millis(0)), at_millis(250));
  PoolUse idle = pool_used(1, 5, 3584);
  idle.busy_ns = ns(125);
  admission.look(idle, at_millis(250));
  EXPECT_TRUE(admission.admits(at_millis(250)));
  EXPECT_EQ(admission.next(at_millis(250)), at_millis(1'250));
}

// Four a device and second, then more as their tasks come.
TEST(JobAdmission, JobsThatAreStartingCountAsWaitingForASecond) {
  JobAdmission admission;
  admission.look(pool_used(1, 0, 0), at_millis(0));
  uint64_t started = 0;
  const auto start_all = [&](int64_t at) {
    const uint64_t before = started;
    while (started < 100 && admission.admits(at_millis(at))) admission.started({++started}, at_millis(at));
    return started - before;
  };
  EXPECT_EQ(start_all(0), 4u);
  EXPECT_EQ(admission.next(at_millis(0)), at_millis(100));
  admission.announced({2});
  admission.announced({3});
  admission.look(pool_used(1, 2, 100), at_millis(100));
  EXPECT_EQ(start_all(100), 2u);
  EXPECT_EQ(start_all(999), 0u);
  EXPECT_EQ(start_all(1'000), 2u);  // the first and the fourth compute on the host, it seems
  admission.ended({5});
  EXPECT_EQ(start_all(1'001), 1u);
}

TEST(JobAdmission, OneJobRunsWhateverElseGoesOn) {
  JobAdmission admission({.most = 1, .host_memory = Bytes{kGiB}});
  admission.needed(Bytes{2 * kGiB});
  admission.look(pool_used(1, 50, 3584), at_millis(0));
  EXPECT_TRUE(admission.admits(at_millis(0)));
  admission.started({1}, at_millis(0));
  admission.announced({1});
  EXPECT_FALSE(admission.admits(at_millis(0)));
}

TEST(JobAdmission, KeepsToItsLimits) {
  JobAdmission most = batch_of(3, {.most = 3});
  most.look(pool_used(4, 3, 100), at_millis(0));
  EXPECT_FALSE(most.admits(at_millis(0)));
  most.ended({1});
  EXPECT_TRUE(most.admits(at_millis(0)));

  JobAdmission memory = batch_of(3, {.host_memory = Bytes{16 * kGiB}});
  memory.look(pool_used(4, 3, 100), at_millis(0));
  memory.needed(Bytes{4 * kGiB});
  EXPECT_TRUE(memory.admits(at_millis(0)));
  memory.needed(Bytes{5 * kGiB});
  EXPECT_FALSE(memory.admits(at_millis(0)));
}

TEST(JobAdmission, FewerWaitWhereTheyAreBoundToADevice) {
  JobAdmission bound = batch_of(3, {.binds_jobs = true});
  bound.look(pool_used(1, 2, 3584, 1), at_millis(0));
  EXPECT_TRUE(bound.admits(at_millis(0)));
  bound.look(pool_used(1, 2, 3584, 2), at_millis(10));
  EXPECT_FALSE(bound.admits(at_millis(10)));
}

// Nobody looked for a minute, while the line was empty.
TEST(JobAdmission, WhatWasWhileNobodyLookedIsNotCounted) {
  JobAdmission admission = batch_of(5);
  PoolUse use = pool_used(1, 5, 3584);
  look_until(admission, use, 0.1, 2'000);
  use.busy_ns = ns(5 * 62'000);
  admission.look(use, at_millis(62'000));
  EXPECT_TRUE(admission.admits(at_millis(62'000)));
}

// heddled was started anew, and counts from there.
TEST(JobAdmission, TotalThatBeginsAnewSaysNothingOfTheDuty) {
  JobAdmission admission = batch_of(8);
  PoolUse use = pool_used(1, 8, 3584);
  look_until(admission, use, 1, 5'000);
  ASSERT_FALSE(admission.admits(at_millis(5'000)));
  for (int64_t at = 6'000; at <= 9'000; at += 1'000) {
    use.busy_ns = ns(8.0 * static_cast<double>(at - 6'000));
    admission.look(use, at_millis(at));
    EXPECT_FALSE(admission.admits(at_millis(at))) << at;
  }
}

}  // namespace
}  // namespace heddle::policy
