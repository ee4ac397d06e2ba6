// What programs get of a simulated device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

using testing::DoubleNear;

double of(Duration part, Duration whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

class Exclusive : public testing::TestWithParam<const char*> {};

TEST_P(Exclusive, OneAloneLosesNothing) {
  TestDevice device(GetParam());
  device.add(1, {.kernel = ms(1), .kernels = 10, .gap = ms(1)});
  device.run_for(ms(1100 - 1));
  EXPECT_EQ(device.busy(1), ms(1000));
  EXPECT_EQ(device.leases(1), 1u);
}

TEST_P(Exclusive, DeviceIsNeverIdleWhileSomebodyHasLongBursts) {
  TestDevice device(GetParam());
  device.add(1, {.kernel = ms(3)});
  device.add(2, {.kernel = ms(0.5), .kernels = 4, .gap = ms(20)});
  device.add(3, {.kernel = ms(7), .kernels = 5, .gap = ms(100)});
  device.run_for(ms(10'000));
  EXPECT_EQ(device.most_leases(), 1u);
  EXPECT_GT(of(device.busy(), device.wanted()), 0.9);
}

TEST_P(Exclusive, ShortPausesDoNotCostTheTurn) {
  TestDevice device(GetParam());
  device.add(1, {.kernel = ms(0.4), .kernels = 1, .gap = ms(0.1)});
  device.add(2, {.kernel = ms(1)});
  device.run_for(ms(20'000));
  EXPECT_GT(of(device.busy(1), device.busy(2)), 0.6);
}

TEST_P(Exclusive, EverybodyWithWorkIsLentTheDevice) {
  TestDevice device(GetParam());
  for (uint64_t session = 1; session <= 6; ++session)
    device.add(session, {.kernel = ms(static_cast<double>(session)), .starts = TimePoint(ms(100.0 * session))});
  device.run_for(ms(20'000));
  for (uint64_t session = 1; session <= 6; ++session) {
    EXPECT_GT(of(device.busy(session), ms(20'000)), 0.05) << session;
    EXPECT_LT(device.longest_wait(session), ms(3000)) << session;
  }
}

INSTANTIATE_TEST_SUITE_P(Dispatch, Exclusive, testing::Values("fs"));

TEST(FsShares, FollowWeightsOfShortKernels) {
  TestDevice device("fs");
  for (const uint64_t session : {1, 2, 5})
    device.add(session, {.kernel = ms(0.1), .tenant = {.weight = static_cast<double>(session)}});
  device.run_for(ms(10'000));
  for (const uint64_t session : {1, 2, 5})
    EXPECT_THAT(of(device.busy(session), ms(10'000)), DoubleNear(static_cast<double>(session) / 8, 0.01));
}

// The drain does not count: what tfs is for.
TEST(FsShares, LongKernelsTakeMore) {
  TestDevice device("fs");
  device.add(1, {.kernel = ms(80)});
  device.add(2, {.kernel = ms(1)});
  device.run_for(ms(10'000));
  EXPECT_THAT(of(device.busy(1), ms(10'000)), DoubleNear(80.0 / 130, 0.02));
}

}  // namespace
}  // namespace heddle::policy
