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

INSTANTIATE_TEST_SUITE_P(Dispatch, Exclusive, testing::Values("fs", "tfs", "las", "token"));

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

std::vector<double> by_weight(const TestDevice& device, const std::vector<double>& weights) {
  std::vector<double> shares;
  for (size_t i = 0; i < weights.size(); ++i)
    shares.push_back(static_cast<double>(device.contended(i + 1).count()) / weights[i]);
  return shares;
}

TEST(TfsShares, AreEvenWhateverTheKernelsAreLike) {
  for (const double longest : {0.2, 5.0, 40.0, 80.0, 150.0}) {
    TestDevice device("tfs");
    device.add(1, {.kernel = ms(longest)});
    device.add(2, {.kernel = ms(1)});
    device.run_for(ms(30'000));
    EXPECT_GE(jain(by_weight(device, {1, 1})), 0.99) << longest;
  }
}

TEST(TfsShares, FollowRandomWeights) {
  uint64_t seed = 1;
  for (int round = 0; round < 20; ++round) {
    TestDevice device("tfs");
    std::vector<double> weights;
    for (uint64_t session = 1; session <= 2 + static_cast<uint64_t>(round) % 3; ++session) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      weights.push_back(1 + static_cast<double>(seed >> 33 & 7));
      device.add(session,
                 {.kernel = ms(0.5 + static_cast<double>(seed >> 40 & 31)), .tenant = {.weight = weights.back()}});
    }
    device.run_for(ms(30'000));
    EXPECT_GE(jain(by_weight(device, weights)), 0.99) << round;
  }
}

// What one leaves, the other has, and is not made to pay for it afterwards.
TEST(TfsShares, AreWorkConserving) {
  TestDevice device("tfs");
  device.add(1, {.kernel = ms(1)});
  device.add(2, {.kernel = ms(1), .kernels = 5, .gap = ms(95)});
  device.run_for(ms(10'000));
  EXPECT_GT(of(device.busy(1), ms(10'000)), 0.9);
  EXPECT_GT(device.bursts_done(2), 70u);
}

TEST(LasShares, ShortEpisodesOvertakeLongOnes) {
  const auto finished = [](const char* policy) {
    TestDevice device(policy);
    device.add(1, {.kernel = ms(2)});
    device.add(2, {.kernel = ms(2)});
    device.add(3, {.kernel = ms(1), .kernels = 5, .gap = ms(40)});
    device.run_for(ms(10'000));
    return device.bursts_done(3);
  };
  EXPECT_LT(finished("fs"), 130u);
  EXPECT_GT(finished("las"), 170u);  // 222 if it never waited
}

// Kernels here do not slow each other down: three that always have work have two thirds of the time each.
TEST(LasShares, OfSeveralAtATimeAreEven) {
  TestDevice device("las:2");
  for (const uint64_t session : {1, 2, 3}) device.add(session, {.kernel = ms(static_cast<double>(session))});
  device.run_for(ms(30'000));
  EXPECT_EQ(device.most_leases(), 2u);
  EXPECT_GE(jain(by_weight(device, {1, 1, 1})), 0.999);
  for (const uint64_t session : {1, 2, 3})
    EXPECT_THAT(of(device.busy(session), device.busy()), DoubleNear(2.0 / 3, 0.02));
}

TEST(LasShares, NobodyWaitsWhereAllMayHaveTheDevice) {
  TestDevice device("las:3");
  for (const uint64_t session : {1, 2, 3}) device.add(session, {.kernel = ms(2), .kernels = 3, .gap = ms(9)});
  device.run_for(ms(10'000));
  for (const uint64_t session : {1, 2, 3}) {
    EXPECT_EQ(device.leases(session), 1u);
    EXPECT_EQ(device.longest_wait(session), Duration{});
  }
}

TEST(LasShares, NewcomersDoNotStarveWhoHasHadMuch) {
  TestDevice device("las");
  device.add(1, {.kernel = ms(1)});
  device.run_for(ms(5000));
  device.add(2, {.kernel = ms(1), .starts = device.now()});
  device.run_for(ms(10'000));
  EXPECT_LT(device.longest_wait(1), ms(3000));
}

}  // namespace
}  // namespace heddle::policy
