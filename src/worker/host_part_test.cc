#include "worker/host_part.h"

#include <gtest/gtest.h>

#include <array>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

constexpr uint64_t kA = 0x10000000, kB = 0x20000000, kBytes = 4 * kMiB;

// A kernel of two pointers; one segment of 4 MiB on the host and one of 8, on a P100: 12 GB/s.
struct HostPartTest : ::testing::Test {
  HostPartTest() {
    kernel.name = "k";
    kernel.parameters = {{0, 8}, {8, 8}};
    part.add(1, kA, Bytes{kBytes});
    part.add(2, kB, Bytes{2 * kBytes});
  }
  // How many times the bus could have moved the first segment meanwhile.
  double time_of(uint64_t first, uint64_t second, bool known = true) {
    const std::array<uint64_t, 2> words{first, second};
    std::vector<image::KernelEffects> all;
    if (known) all.push_back(effects);
    const KernelUse use = use_of(1, info, kernel, all);
    const Duration took = part.time_of(use, std::as_bytes(std::span(words)), model);
    return double(took.count()) / (double(kBytes) / 12.0);
  }

  HostPart part;
  DeviceModel model = *device_preset("P100");
  image::ModuleInfo info;
  image::KernelInfo kernel;
  image::KernelEffects effects{.name = "k", .read = 0b01, .written = 0b10};
};

TEST_F(HostPartTest, WhatIsWrittenMovesOnceAndWhatIsReadSeveralTimes) {
  EXPECT_NEAR(time_of(0, kA), 1, 0.01);
  EXPECT_NEAR(time_of(kA + 100, 0), HostPart::kReads, 0.01);
  EXPECT_NEAR(time_of(kA, kB), HostPart::kReads + 2, 0.01);
  EXPECT_NEAR(time_of(kA, kA + 64), HostPart::kReads, 0.01) << "it counts once";
}

TEST_F(HostPartTest, OfAKernelThatDoesNotReachItNothingMoves) {
  EXPECT_EQ(time_of(0, 12345), 0);
  EXPECT_EQ(time_of(kA + kBytes, kB - 1), 0);
  effects.read = effects.written = 0;
  EXPECT_EQ(time_of(kA, kB), 0);
  part.remove(kA);
  part.remove(kB);
  EXPECT_TRUE(part.empty());
  EXPECT_EQ(time_of(kA, kB, false), 0);
}

TEST_F(HostPartTest, OfAKernelThatIsNotKnownAllCountsAsRead) {
  EXPECT_NEAR(time_of(0, kA, false), HostPart::kReads, 0.01);
}

TEST_F(HostPartTest, TheBusIsSlowedAsTheDeviceIs) {
  model.slowdown = 100;
  EXPECT_NEAR(time_of(0, kA), 100, 0.01);
  model.slowdown = 0;  // not paced: then nothing takes longer on the host
  EXPECT_EQ(time_of(0, kA), 0);
  model.kind = DeviceKind::kCuda;
  model.copy_bytes_per_s = 0;
  EXPECT_GT(time_of(0, kA), 0);
}

// The second of two segments lies on the host, of a device where reaching it takes minutes.
struct PromotionWaitTest : SessionHarness {
  static constexpr uint64_t kOnDevice = kTestBase, kOnHost = kTestBase + kSegmentBytes;

  void SetUp() override {
    SessionHarness::SetUp();
    model.slowdown = 1e6;
    module_info.kernels.resize(1);
    module_info.kernels[0].name = "fill";
    module_info.kernels[0].parameters = {{0, 8}};
    module_info.kernels[0].parameter_bytes = 8;
    kernel_effects = {{.name = "fill", .written = 1}};
    prepare_context = [](FakeContext& device) { device.kernels["fill"] = [](auto) { return 0u; }; };
    write({.state = protocol::Lease::State::kHeld, .wanted = true, .generation = 1, .window_ns = 2'000'000});
    start_worker();
    send_module(1);
    map(1, kOnDevice);
    map_on_host(2, kOnHost);
    for (uint64_t number : {1, 2}) simple(protocol::RecordType::kNeed, 0, number);
  }
  void TearDown() override {
    EXPECT_EQ(header().error.load(), 0u);
    SessionHarness::TearDown();
  }
  void write(const protocol::Lease& lease) {
    control_page.write_lease(lease);
    protocol::ring_bell(header().to_worker);
  }
  void expect_held(uint64_t launched) {
    ASSERT_TRUE(eventually([&] { return told<protocol::Drained>() == 1; })) << "it is no work to be served";
    ::usleep(50'000);
    EXPECT_LT(header().completed.load(), launched);
  }
};

TEST_F(PromotionWaitTest, AKernelThatDoesNotReachTheHostGoesAtOnce) {
  EXPECT_TRUE(completes(launch(0, 0, {kOnDevice})));
}

TEST_F(PromotionWaitTest, OneThatDoesWaits) {
  EXPECT_TRUE(completes(launch(0, 0, {kOnDevice})));
  expect_held(launch(0, 0, {kOnHost}));
}

TEST_F(PromotionWaitTest, ItWaitsNoLongerOnceNothingIsToBePromoted) {
  const uint64_t launched = launch(0, 0, {kOnHost});
  ::usleep(50'000);
  EXPECT_LT(header().completed.load(), launched);
  write({.state = protocol::Lease::State::kOpen, .generation = 1});
  EXPECT_TRUE(completes(launched));
}

TEST_F(PromotionWaitTest, AWorkerThatIsSuspendedMeanwhileLeavesItToTheNextOne) {
  const uint64_t launched = launch(0, 0, {kOnHost});
  ::usleep(50'000);
  suspend();
  ASSERT_TRUE(eventually([&] { return told<protocol::Suspended>() == 1; }));
  EXPECT_EQ(last<protocol::Suspended>().given_up, 1u);
  EXPECT_LT(header().completed.load(), launched);
}

TEST(PromotionWait, LastsAsLongAsTheKernelWouldTakeOverTheBus) {
  ManualClock clock;
  PromotionWait wait;
  int asked = 0;
  const auto over_bus = [&] {
    ++asked;
    return Duration(100);
  };
  EXPECT_TRUE(wait.holds(7, clock.now(), over_bus));
  clock.advance(Duration(99));
  EXPECT_TRUE(wait.holds(7, clock.now(), over_bus));
  EXPECT_EQ(asked, 1);
  clock.advance(Duration(1));
  EXPECT_FALSE(wait.holds(7, clock.now(), over_bus));
  EXPECT_TRUE(wait.holds(8, clock.now(), over_bus)) << "another waits anew";
  wait.none();
  EXPECT_FALSE(wait.holds());
}

}  // namespace
}  // namespace heddle::worker
