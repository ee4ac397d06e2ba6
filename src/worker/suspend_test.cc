// A worker is told to give its task up: what it has taken ends, and another one goes on with the rest.

#include <gmock/gmock.h>

#include <atomic>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;
using protocol::Suspended;

struct SuspendTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(1);
    module_info.kernels[0].name = "count";
    prepare_context = [this](FakeContext& device) {
      device.kernels["count"] = [this](auto) {
        ++counted;
        return 0u;
      };
    };
    start_worker();
    send_module(1);
  }
  // What is appended behind this is the next worker's: this one has heard, since it takes messages in their order.
  void suspend_for_certain() {
    constexpr uint64_t kBehind = kTestBase + 16 * kSegmentBytes;
    suspend();
    map(99, kBehind);
    ASSERT_TRUE(eventually([&] { return context->mapped().contains(kBehind); }));
  }
  bool left() {
    return eventually([&] { return told<Suspended>() > 0; }) && last<Suspended>().given_up == 1;
  }
  std::atomic<int> counted{0};
};

TEST_F(SuspendTest, AtRestAWorkerLeavesAtOnceAndTheNextGoesOn) {
  map(1, kTestBase);
  simple(RecordType::kNeed, 0, 1);
  ASSERT_TRUE(completes(launch(0, 0)));
  suspend();
  ASSERT_TRUE(left());
  EXPECT_EQ(last<Suspended>().serial, kTaskSerial);
  EXPECT_EQ(last<Suspended>().unmapped, 1u);
  EXPECT_FALSE(control_page.log().computes());
  EXPECT_FALSE(control_page.log().ended);
  const uint64_t later = launch(0, 0);
  session.reset();
  EXPECT_EQ(counted, 1);
  start_worker();
  ASSERT_TRUE(completes(later));
  EXPECT_EQ(counted, 2);
}

TEST_F(SuspendTest, WhatIsOnTheDeviceEndsFirstAndNothingMoreIsTaken) {
  context->pause(0);
  const uint64_t running = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  suspend_for_certain();
  const uint64_t later = launch(0, 0);
  EXPECT_EQ(told<Suspended>(), 0u);
  context->resume(0);
  ASSERT_TRUE(left());
  EXPECT_EQ(header().completed.load(), running);
  EXPECT_EQ(context->handed_over().size(), 1u);
  start_worker();
  ASSERT_TRUE(completes(later));
  EXPECT_EQ(counted, 2);
}

TEST_F(SuspendTest, AHostCallReturnsFirst) {
  const uint64_t call = simple(RecordType::kHostCall, 1);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call; }));
  suspend_for_certain();
  const uint64_t later = marker(1);
  EXPECT_EQ(told<Suspended>(), 0u);
  stream(1).host_done = call;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(left());
  EXPECT_EQ(header().completed.load(), call);
  start_worker();
  EXPECT_TRUE(completes(later));
}

// A free takes effect with what came before it; a record that waits for memory is the next worker's.
TEST_F(SuspendTest, ARecordThatWaitsStaysInTheLog) {
  const uint64_t needs = simple(RecordType::kNeed, 0, 7);
  suspend();
  ASSERT_TRUE(left());
  EXPECT_LT(header().completed.load(), needs);
  hold_back = true;
  start_worker();
  map(7, kTestBase);
  proceed();
  EXPECT_TRUE(completes(needs));
}

TEST_F(SuspendTest, WithDeviceMallocInUseItStays) {
  session.reset();
  module_info.allocates = true;
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  suspend();
  ASSERT_TRUE(eventually([&] { return told<Suspended>() == 1; }));
  EXPECT_EQ(last<Suspended>().given_up, 0u);
  EXPECT_TRUE(completes(launch(0, 0)));
}

TEST_F(SuspendTest, OfAnotherTaskItMeansNothing) {
  suspend(kTaskSerial + 1);
  ASSERT_TRUE(completes(launch(0, 0)));
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  suspend();
  next_task(kTaskSerial + 1);
  proceed();
  EXPECT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(told<Suspended>(), 0u);
}

TEST_F(SuspendTest, BeforeItsMemoryIsThereItLeavesEverythingAsItWas) {
  ASSERT_TRUE(completes(launch(0, 0)));
  hold_back = true;
  start_worker();
  suspend();
  ASSERT_TRUE(left());
  hold_back = false;
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted, 2);
}

// Variables are saved whatever the time: a save has just taken its hundredth.
TEST_F(SuspendTest, VariablesAreSavedFirst) {
  session.reset();
  constexpr uint64_t kVariable = kTestBase + 4 * kSegmentBytes;
  const auto variable = [] {
    return std::atomic_ref(*reinterpret_cast<uint64_t*>(kVariable));  // NOLINT(performance-no-int-to-ptr)
  };
  module_info.variables.push_back({"counter", 8, false, false});
  prepare_context = [&](FakeContext& device) {
    ASSERT_TRUE(device.map(kVariable, Bytes{kSegmentBytes}, *create_memfd("variables", Bytes{kSegmentBytes}), false));
    device.variables["counter"] = {kVariable, 8};
    device.kernels["count"] = [&](auto) {
      ++variable();
      return 0u;
    };
  };
  control_page.begin_task(kTaskSerial - 1, true);
  start_worker();
  for (int round = 0; round < 3; ++round) launch(0, 0);
  ASSERT_TRUE(completes(launch(0, 0)));
  suspend();
  ASSERT_TRUE(left());
  EXPECT_TRUE(control_page.log().variables_are_saved());
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  EXPECT_EQ(variable().load(), 5u);
}

}  // namespace
}  // namespace heddle::worker
