// Rain's balancers, driven through a scheduler: which device a job is assigned to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/learning.h"
#include "policy/placement/history.h"
#include "policy/scheduler.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::HasSubstr;
using Kind = Decision::Kind;

// Each job is one session of the same number.
class Balanced {
 public:
  Balanced(const char* policy, std::vector<DeviceSpec> devices)
      : scheduler_(policy_named(policy), std::move(devices)) {}

  // Where the job's first task goes; nothing where it waits.
  std::optional<uint64_t> run(uint64_t job, const char* app = "", Bytes memory = gib(1)) {
    scheduler_.session_opened({job}, {job}, "p100", {}, at(now_), {}, app);
    return begin(job, memory);
  }
  std::optional<uint64_t> begin(uint64_t job, Bytes memory) {
    scheduler_.task_arrived({{++tasks_}, {job}, {job}, 0, "", memory, grid(1)}, at(now_));
    return decided();
  }
  // Of the one task whose turn it is.
  std::optional<uint64_t> decided() {
    for (const Decision& decision : scheduler_.decisions(at(now_))) {
      reason = decision.reason;
      if (decision.kind == Kind::kGrant) return decision.device.value;
    }
    const auto waiting = scheduler_.waiting();
    if (!waiting.empty()) reason = waiting.back().why;
    return {};
  }
  void serve(uint64_t job, uint64_t device, int64_t busy_ms) {
    scheduler_.served({job}, {device}, {.busy = std::chrono::milliseconds(busy_ms)});
  }
  void end(uint64_t job) { scheduler_.session_closed({job}, at(now_)); }
  void end_task(uint64_t task) { scheduler_.task_ended({task}, at(now_)); }
  void pass(int64_t milliseconds) { now_ += milliseconds; }
  // A job of the application has run for so long, and used the device it was assigned to for a part of that; and its
  // program has computed for so long itself, where somebody looked.
  void teach(const char* app, int64_t life_ms, int64_t busy_ms, std::optional<int64_t> computed_ms = {}) {
    const uint64_t job = ++taught_;
    const auto device = run(job, app);
    serve(job, *device, busy_ms);
    if (computed_ms) Learning(scheduler_).computed({job}, std::chrono::milliseconds(*computed_ms));
    pass(life_ms);
    end(job);
  }
  Scheduler& scheduler() { return scheduler_; }

  std::string reason;

 private:
  Scheduler scheduler_;
  uint64_t tasks_ = 0, taught_ = 1000;
  int64_t now_ = 0;
};

constexpr std::optional<uint64_t> on_device(uint64_t device) {
  return device;
}

class Balancers : public testing::TestWithParam<const char*> {};

TEST_P(Balancers, AssignAJobForItsLife) {
  Balanced pool(GetParam(), p100s(2));
  ASSERT_EQ(pool.run(1), on_device(0));
  pool.end_task(1);
  EXPECT_EQ(pool.begin(1, gib(2)), on_device(0));
  EXPECT_EQ(pool.reason, "the job is assigned to device 0");
  ASSERT_EQ(pool.run(2), on_device(1));
}

TEST_P(Balancers, AnAssignedJobWaitsForMemoryOnItsDevice) {
  Balanced pool(GetParam(), p100s(2));
  ASSERT_EQ(pool.run(1), on_device(0));
  ASSERT_EQ(pool.run(2), on_device(1));
  ASSERT_EQ(pool.run(3, "", gib(10)), on_device(0));
  EXPECT_EQ(pool.begin(1, gib(10)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("the job is assigned: needs 10 GiB; most is free on device 0: 5 GiB of 16 GiB"));
  pool.end(3);
  EXPECT_EQ(pool.decided(), on_device(0));
}

TEST_P(Balancers, AJobThatFitsNowhereWaits) {
  Balanced pool(GetParam(), p100s(2));
  ASSERT_EQ(pool.run(1, "", gib(10)), on_device(0));
  ASSERT_EQ(pool.run(2, "", gib(10)), on_device(1));
  EXPECT_EQ(pool.run(3, "", gib(10)), std::nullopt);
  pool.end(2);
  EXPECT_EQ(pool.decided(), on_device(1));
}

TEST_P(Balancers, WhatTheDeviceOfAJobCanNeverHoldIsRefused) {
  auto devices = p100s(2);
  devices[1].memory = gib(32);
  Balanced pool(GetParam(), devices);
  ASSERT_EQ(pool.run(1), on_device(0));
  pool.end_task(1);
  EXPECT_EQ(pool.begin(1, gib(20)), std::nullopt);
  EXPECT_TRUE(pool.scheduler().waiting().empty());
  EXPECT_THAT(pool.reason, HasSubstr("20 GiB"));
}

// A stream of small jobs does not keep a large one waiting for ever.
TEST_P(Balancers, TheOldestThatWaitsReservesADevice) {
  Balanced pool(GetParam(), p100s(1));
  ASSERT_EQ(pool.run(1, "", gib(8)), on_device(0));
  EXPECT_EQ(pool.run(2, "", gib(12)), std::nullopt);
  pool.pass(3000);
  EXPECT_EQ(pool.run(3, "", gib(1)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("device 0 is reserved for an older request"));
  pool.end(1);
  EXPECT_EQ(pool.decided(), on_device(0));
}

INSTANTIATE_TEST_SUITE_P(Placement, Balancers, testing::Values("grr", "gmin", "gwtmin", "rtf", "guf", "guf:cpu"));

TEST(Grr, GoesRoundWhateverEnds) {
  Balanced pool("grr", p100s(3));
  EXPECT_EQ(pool.run(1), on_device(0));
  EXPECT_EQ(pool.run(2), on_device(1));
  pool.end(1);
  pool.end(2);
  EXPECT_EQ(pool.run(3), on_device(2));
  EXPECT_EQ(pool.run(4), on_device(0));
}

TEST(Grr, PassesOverDevicesWithoutTheMemory) {
  Balanced pool("grr", p100s(3));
  EXPECT_EQ(pool.run(1), on_device(0));
  EXPECT_EQ(pool.run(2, "", gib(16)), on_device(1));
  EXPECT_EQ(pool.run(3), on_device(2));
  EXPECT_EQ(pool.run(4), on_device(0));
  EXPECT_EQ(pool.run(5), on_device(2));
}

TEST(GMin, TakesTheDeviceWithTheFewestJobs) {
  Balanced pool("gmin", p100s(3));
  for (uint64_t job = 1; job <= 3; ++job) EXPECT_EQ(pool.run(job), on_device(job - 1));
  pool.end(2);
  EXPECT_EQ(pool.run(4), on_device(1));
  EXPECT_EQ(pool.reason, "fewest jobs on 1 (0)");
  EXPECT_EQ(pool.run(5), on_device(0));
}

TEST(GWtMin, CountsJobsByTheDevicesWeight) {
  auto devices = p100s(2);
  devices[0].weight = 450;
  Balanced pool("gwtmin", devices);
  EXPECT_EQ(pool.run(1), on_device(1));  // 1/0.45 against 1
  EXPECT_EQ(pool.run(2), on_device(1));  // against 2
  EXPECT_EQ(pool.run(3), on_device(0));  // against 3
  EXPECT_EQ(pool.run(4), on_device(1));
}

TEST(GWtMin, IsGMinWhereDevicesAreAlike) {
  Balanced pool("gwtmin", p100s(2));
  EXPECT_EQ(pool.run(1), on_device(0));
  EXPECT_EQ(pool.run(2), on_device(1));
  EXPECT_EQ(pool.run(3), on_device(0));
}

TEST(Rtf, GoesWhereLeastWorkIsLeft) {
  Balanced pool("rtf", p100s(2));
  pool.teach("long", 1000, 800);
  pool.teach("short", 100, 50);
  EXPECT_EQ(pool.run(1, "long"), on_device(0));
  EXPECT_EQ(pool.run(2, "short"), on_device(1));
  EXPECT_EQ(pool.run(3, "short"), on_device(1));  // 50 left there, 800 on 0
  EXPECT_EQ(pool.reason, "least work expected on 1 (0.05 s left, and 0.05 s of this job)");
  pool.serve(1, 0, 790);  // an eighth is always left
  EXPECT_EQ(pool.run(4, "short"), on_device(0));
}

TEST(Rtf, CountsWorkByTheDevicesWeight) {
  auto devices = p100s(2);
  devices[0].weight = 500;
  Balanced pool("rtf", devices);
  pool.teach("a", 1000, 400);  // on device 1, which is the faster
  EXPECT_EQ(pool.run(1, "a"), on_device(1));
  EXPECT_EQ(pool.run(2, "a"), on_device(0));  // 800 ms against 800: the lower id
}

TEST(Guf, KeepsThoseApartThatUseTheDeviceMuch) {
  Balanced pool("guf", p100s(2));
  pool.teach("busy", 1000, 900);
  pool.teach("idle", 1000, 100);
  EXPECT_EQ(pool.run(1, "busy"), on_device(0));
  EXPECT_EQ(pool.run(2, "idle"), on_device(1));
  EXPECT_EQ(pool.run(3, "idle"), on_device(1));
  EXPECT_EQ(pool.run(4, "busy"), on_device(1));
  EXPECT_EQ(pool.reason, "least utilization expected on 1 (200 thousandths of it)");
  EXPECT_EQ(pool.run(5, "idle"), on_device(0));
}

// Both use their device for half of the time; the first does nothing else, the second computes meanwhile.
TEST(GufByProcessorTime, KeepsThoseApartThatLeaveTheComputingToTheDevice) {
  Balanced pool("guf:cpu", p100s(2));
  pool.teach("sleeps", 1000, 500, 50);
  pool.teach("computes", 1000, 500, 1000);
  EXPECT_EQ(pool.run(1, "sleeps"), on_device(0));
  EXPECT_EQ(pool.run(2, "computes"), on_device(1));
  EXPECT_EQ(pool.run(3, "computes"), on_device(1));
  EXPECT_EQ(pool.reason, "least utilization expected on 1 (500 thousandths of it)");
  EXPECT_EQ(pool.run(4, "computes"), on_device(1));  // by the time for which they were there it would be device 0
  EXPECT_EQ(pool.run(5, "sleeps"), on_device(1));
  EXPECT_EQ(pool.run(6, "computes"), on_device(0));
}

TEST(GufByProcessorTime, TakesTheOtherTimeWhereNobodyLooked) {
  Balanced pool("guf:cpu", p100s(2));
  pool.teach("unseen", 1000, 250);
  EXPECT_EQ(Learning::history(pool.scheduler())->of("unseen")->by_host, 0.25);
  pool.teach("idle on the host", 1000, 250, 0);
  EXPECT_EQ(Learning::history(pool.scheduler())->of("idle on the host")->by_host, History::kMostByHost);
}

TEST(GufByProcessorTime, AddsUpWhatIsSaidOfAJobAndNothingElse) {
  Balanced pool("guf:cpu", p100s(1));
  pool.run(1, "a");
  Learning learning(pool.scheduler());
  for (const int64_t ms : {100, 0, -50, 300}) learning.computed({1}, std::chrono::milliseconds(ms));
  learning.computed({9}, std::chrono::milliseconds(7));  // of no session
  pool.serve(1, 0, 200);
  pool.pass(1000);
  pool.end(1);
  EXPECT_EQ(Learning::history(pool.scheduler())->of("a")->by_host, 0.5);
}

// Without what was learned the third job would go to device 0: as many jobs, and the lower id.
TEST(Learning, PlacesByWhatAnEarlierSchedulerKnew) {
  for (const char* policy : {"rtf", "guf", "guf:cpu"}) {
    Balanced before(policy, p100s(2));
    before.teach("long", 1000, 800);
    before.teach("short", 100, 5);
    Balanced pool(policy, p100s(2));
    for (const KnownApp& app : Learning::history(before.scheduler())->known()) Learning(pool.scheduler()).remember(app);
    EXPECT_EQ(pool.run(1, "long"), on_device(0)) << policy;
    EXPECT_EQ(pool.run(2, "short"), on_device(1)) << policy;
    EXPECT_EQ(pool.run(3, "short"), on_device(1)) << policy;
    EXPECT_THAT(pool.reason, HasSubstr("expected on 1")) << policy;
  }
}

TEST(Learning, IsNothingForOtherPolicies) {
  Balanced pool("gwtmin", p100s(2));
  EXPECT_EQ(Learning::history(pool.scheduler()), nullptr);
  Learning(pool.scheduler()).remember({"a", {1, 1, 0.5, 1, 1}});
  EXPECT_EQ(pool.run(1, "a"), on_device(0));
}

TEST(History, FollowsTheLatestJobs) {
  History history;
  EXPECT_FALSE(history.of("a"));
  history.add("a", 100, 0.5, 3);
  history.add("a", 200, 2, 1000);
  EXPECT_EQ(history.of("a")->busy, 150);
  EXPECT_EQ(history.of("a")->by_host, 51.5);
  EXPECT_EQ(history.of("a")->utilization, 0.75);
  for (int job = 0; job < 60; ++job) history.add("a", 1000, 0.1, 1);
  EXPECT_NEAR(history.of("a")->busy, 1000, 10);
  history.add("b", 500, 0.3, 1);
  EXPECT_NEAR(history.mean().busy, 750, 10);
}

TEST(History, GoesOnWhereAnEarlierOneEnded) {
  History first, second;
  for (int job = 0; job < 20; ++job) first.add(job % 3 == 0 ? "a" : "b", 100 * job, 0.01 * job, 1);
  for (const KnownApp& app : first.known()) second.restore(app);
  for (History* history : {&first, &second}) history->add("a", 1000, 0.5, 2);
  EXPECT_EQ(second.of("a")->jobs, first.of("a")->jobs);
  EXPECT_EQ(second.of("a")->busy, first.of("a")->busy);
  EXPECT_EQ(second.of("b")->utilization, first.of("b")->utilization);
  EXPECT_EQ(second.mean().busy, first.mean().busy);
}

TEST(History, RestoredIsForgottenInItsOrder) {
  History first, second;
  first.add("z", 1, 0, 0);
  first.add("a", 1, 0, 0);
  for (const KnownApp& app : first.known()) second.restore(app);
  for (int app = 0; app < 1023; ++app) second.add(std::to_string(app), 1, 0, 0);
  EXPECT_FALSE(second.of("z"));
  EXPECT_TRUE(second.of("a"));
}

TEST(History, ForgetsTheAppUnusedForLongest) {
  History history;
  history.add("old", 1, 0, 0);
  for (int app = 0; app < 1100; ++app) history.add(std::to_string(app), 1, 0, 0);
  EXPECT_FALSE(history.of("old"));
  EXPECT_FALSE(history.of("0"));
  EXPECT_TRUE(history.of("1099"));
}

}  // namespace
}  // namespace heddle::policy
