#include "daemon/usage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace heddle::daemon {
namespace {

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
  Worker worker;
};

TEST_F(UsageTest, EachTasksPartIsCountedOnce) {
  publish({.launches = 3, .busy_ns = 30, .longest_burst_ns = 9});
  EXPECT_EQ(close_account(device, registry).launches, 3u);
  publish({.launches = 5, .busy_ns = 70, .longest_burst_ns = 9});
  const protocol::Usage second = close_account(device, registry);
  EXPECT_EQ(second.launches, 2u);
  EXPECT_EQ(second.busy_ns, 40u);
  EXPECT_EQ(close_account(device, registry).launches, 0u);
  EXPECT_EQ(usage_of(device).launches, 5u);
}

TEST_F(UsageTest, TheDeviceHasWhatEndedThereAndWhatIsThere) {
  publish({.busy_ns = 30});
  close_account(device, registry);
  publish({.busy_ns = 70, .busy_since_ns = 5});
  device.worker = &worker;
  Session session;
  session.devices.push_back(std::move(device));
  registry.sessions.emplace(SessionId{1}, std::move(session));
  const auto sums = usage_by_device(registry);
  EXPECT_EQ(sums[0].busy_ns, 0u);
  EXPECT_EQ(sums[1].busy_ns, 70u);
  EXPECT_EQ(sums[1].busy_since_ns, 5u);
}

// A worker that was out of its mind does not make anybody's account run backwards.
TEST_F(UsageTest, TotalsThatShrinkCountAsNothing) {
  publish({.busy_ns = 50});
  close_account(device, registry);
  publish({.busy_ns = 20});
  EXPECT_EQ(close_account(device, registry).busy_ns, 0u);
}

TEST_F(UsageTest, WhatIsUnderWayCountsOnlyWhileAWorkerServes) {
  publish({.busy_since_ns = 100});
  EXPECT_EQ(usage_of(device).busy_since_ns, 0u);
  device.worker = &worker;
  EXPECT_EQ(usage_of(device).busy_since_ns, 100u);
}

TEST_F(UsageTest, WithoutARingThereIsNone) {
  const VirtualDevice none;
  EXPECT_EQ(usage_of(none).busy_ns, 0u);
}

TEST_F(UsageTest, SumsAddTotalsAndTakeTheLargest) {
  protocol::Usage sum{.launches = 1, .bursts = 2, .longest_burst_ns = 5, .longest_gap_ns = 1};
  add(sum, {.launches = 2, .bursts = 1, .longest_burst_ns = 3, .longest_gap_ns = 7, .busy_since_ns = 40});
  add(sum, {.busy_since_ns = 30});
  EXPECT_EQ(sum.launches, 3u);
  EXPECT_EQ(sum.bursts, 3u);
  EXPECT_EQ(sum.longest_burst_ns, 5u);
  EXPECT_EQ(sum.longest_gap_ns, 7u);
  EXPECT_EQ(sum.busy_since_ns, 30u);
}

TEST_F(UsageTest, BusyTimeGrowsWhileSomethingRuns) {
  const protocol::Usage usage{.busy_ns = 1000, .busy_since_ns = 5000};
  EXPECT_EQ(usage_json(usage, TimePoint(Duration(5500)))["busy_ns"], 1500);
  EXPECT_EQ(usage_json(usage, TimePoint(Duration(4900)))["busy_ns"], 1000);  // begun behind our look at the clock
}

}  // namespace
}  // namespace heddle::daemon
