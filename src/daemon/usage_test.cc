#include "daemon/usage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace heddle::daemon {
namespace {

constexpr TimePoint kNow{Duration(1000)};

struct UsageTest : ::testing::Test {
  void SetUp() override {
    auto made = protocol::ControlPage::create();
    ASSERT_TRUE(made) << made.error().text;
    device.control = std::move(made->second);
    registry.devices.resize(2);
    device.task = std::make_unique<Task>();
    device.task->state = TaskState::kRunning;
    device.task->device = DeviceId{1};
  }
  void publish(const protocol::Usage& usage) { device.control->publish(usage); }
  VirtualDevice device;
  Registry registry;
};

TEST_F(UsageTest, EachTasksPartIsCountedOnce) {
  publish({.launches = 3, .busy_ns = 30, .longest_burst_ns = 9});
  EXPECT_EQ(close_account(device, registry, kNow).launches, 3u);
  publish({.launches = 5, .busy_ns = 70, .longest_burst_ns = 9});
  const protocol::Usage second = close_account(device, registry, kNow);
  EXPECT_EQ(second.launches, 2u);
  EXPECT_EQ(second.busy_ns, 40u);
  EXPECT_EQ(close_account(device, registry, kNow).launches, 0u);
  EXPECT_EQ(usage_of(device, kNow).launches, 5u);
}

TEST_F(UsageTest, TheDeviceHasWhatEndedThereAndWhatIsThere) {
  publish({.busy_ns = 30});
  close_account(device, registry, kNow);
  publish({.busy_ns = 70, .busy_since_ns = 995});
  Session session;
  session.devices.push_back(std::move(device));
  registry.sessions.emplace(SessionId{1}, std::move(session));
  const auto sums = usage_by_device(registry, kNow);
  EXPECT_EQ(sums[0].busy_ns, 0u);
  EXPECT_EQ(sums[1].busy_ns, 75u);
  EXPECT_NE(sums[1].busy_since_ns, 0u);
}

TEST_F(UsageTest, PoliciesSeeItAsDurations) {
  const policy::Service service = service_of(
      {.copy_ns = 2, .busy_ns = 1, .bursts = 3, .longest_burst_ns = 4, .merged_burst_ns = 5, .longest_gap_ns = 6});
  EXPECT_EQ(service.busy, Duration(1));
  EXPECT_EQ(service.copies, Duration(2));
  EXPECT_EQ(service.bursts, 3u);
  EXPECT_EQ(service.longest_burst, Duration(4));
  EXPECT_EQ(service.merged_burst, Duration(5));
  EXPECT_EQ(service.longest_gap, Duration(6));
}

// A worker that was out of its mind does not make anybody's account run backwards.
TEST_F(UsageTest, TotalsThatShrinkCountAsNothing) {
  publish({.busy_ns = 50});
  close_account(device, registry, kNow);
  publish({.busy_ns = 20});
  EXPECT_EQ(close_account(device, registry, kNow).busy_ns, 0u);
}

TEST_F(UsageTest, WhatIsUnderWayCountsOnlyWhileAWorkerServes) {
  publish({.busy_ns = 7, .busy_since_ns = 900});
  device.task->state = TaskState::kStarting;
  EXPECT_EQ(usage_of(device, kNow).busy_since_ns, 0u);
  EXPECT_EQ(usage_of(device, kNow).busy_ns, 7u);
  device.task->state = TaskState::kRunning;
  EXPECT_EQ(usage_of(device, kNow).busy_since_ns, 900u);
  EXPECT_EQ(usage_of(device, kNow).busy_ns, 107u);
  EXPECT_EQ(usage_of(device, TimePoint(Duration(800))).busy_ns, 7u);  // begun behind our look at the clock
}

// Each ring's own time: none of it shows only once the ring is idle.
TEST_F(UsageTest, WhatIsUnderWayInSeveralRingsCountsForEach) {
  Session session;
  for (const uint64_t since : {900, 700}) {
    auto made = protocol::ControlPage::create();
    ASSERT_TRUE(made) << made.error().text;
    made->second.publish({.busy_ns = 10, .busy_since_ns = since});
    VirtualDevice& each = session.devices.emplace_back();
    each.control = std::move(made->second);
    each.task = std::make_unique<Task>(Task{.state = TaskState::kRunning, .device = DeviceId{1}});
  }
  EXPECT_EQ(usage_of(session, kNow).busy_ns, 420u);
  registry.sessions.emplace(SessionId{1}, std::move(session));
  EXPECT_EQ(usage_by_device(registry, kNow)[1].busy_ns, 420u);
}

// The worker is the tenant's: it may write what it likes.
TEST_F(UsageTest, AbsurdPagesDoNotSpoilTheDevicesTotals) {
  constexpr uint64_t kAbsurd = 1ull << 63;
  device.task->granted = TimePoint(Duration(400));
  for (int i = 0; i < 5; ++i) {
    publish({.launches = kAbsurd, .copy_ns = kAbsurd, .busy_ns = kAbsurd, .busy_since_ns = 1});
    EXPECT_LE(usage_of(device, kNow).busy_ns, 600u * (static_cast<uint64_t>(i) + 1));
    EXPECT_EQ(usage_of(device, kNow).busy_since_ns, 400u);
    EXPECT_LE(close_account(device, registry, kNow).busy_ns, 600u);
    publish({});
    EXPECT_EQ(close_account(device, registry, kNow).busy_ns, 0u);
  }
  // Five tasks of 600 ns each.
  EXPECT_LE(registry.devices[1].usage.busy_ns, 3000u);
  EXPECT_LE(registry.devices[1].usage.copy_ns, 3000u);
  EXPECT_EQ(registry.devices[1].usage.launches, kAbsurd);
}

TEST_F(UsageTest, SumsDoNotWrap) {
  protocol::Usage sum{.kernel_ns = UINT64_MAX - 1};
  add(sum, {.kernel_ns = 5});
  EXPECT_EQ(sum.kernel_ns, UINT64_MAX);
}

TEST_F(UsageTest, WithoutARingThereIsNone) {
  const VirtualDevice none;
  EXPECT_EQ(usage_of(none, kNow).busy_ns, 0u);
}

TEST_F(UsageTest, SumsAddTotalsAndTakeTheLargest) {
  protocol::Usage sum{.launches = 1, .bursts = 2, .longest_burst_ns = 5, .longest_gap_ns = 1};
  add(sum, {.launches = 2, .bursts = 1, .longest_burst_ns = 3, .longest_gap_ns = 7, .busy_since_ns = 40});
  add(sum, {});
  EXPECT_EQ(sum.launches, 3u);
  EXPECT_EQ(sum.bursts, 3u);
  EXPECT_EQ(sum.longest_burst_ns, 5u);
  EXPECT_EQ(sum.longest_gap_ns, 7u);
  EXPECT_NE(sum.busy_since_ns, 0u) << "one of them is busy";
}

// It was handed over, and began later.
TEST_F(UsageTest, WhatIsToldNeverFalls) {
  uint64_t told = 0;
  EXPECT_EQ(usage_json({.busy_ns = 1500, .busy_since_ns = 5000}, told)["busy_ns"], 1500);
  const auto later = usage_json({.busy_ns = 1400}, told);
  EXPECT_EQ(later["busy_ns"], 1500);
  EXPECT_FALSE(later["busy_now"]);
  EXPECT_EQ(usage_json({.busy_ns = 1600}, told)["busy_ns"], 1600);
}

}  // namespace
}  // namespace heddle::daemon
