#include "policy/dispatch/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

using testing::DoubleNear;

Program with(double request, double limit, Program program = {.kernel = ms(0.5)}) {
  program.tenant.request = request;
  program.tenant.limit = limit;
  return program;
}

double share(const TestDevice& device, uint64_t session) {
  return static_cast<double>(device.busy(session).count()) /
         static_cast<double>(device.now().time_since_epoch().count());
}

// Its share of the minute behind the first two windows.
class Minute {
 public:
  explicit Minute(TestDevice& device) : device_(device) {
    device.run_for(ms(20'000));
    for (uint64_t session = 1; session <= 3; ++session) before_.push_back(busy(session));
    device.run_for(ms(60'000));
  }
  double share(uint64_t session) const { return (busy(session) - before_[session - 1]) / 60e9; }

 private:
  double busy(uint64_t session) const {
    return device_.has(session) ? static_cast<double>(device_.busy(session).count()) : 0;
  }
  TestDevice& device_;
  std::vector<double> before_;
};

// What each had in each window of 10 s, looked at each 50 ms.
void expect_limits_kept(TestDevice& device, const std::map<uint64_t, double>& limits, Duration tolerance) {
  std::map<uint64_t, std::vector<Duration>> had;
  for (int look = 0; look < 1200; ++look) {
    device.run_for(ms(50));
    for (const auto& [session, limit] : limits) had[session].push_back(device.busy(session));
  }
  for (const auto& [session, limit] : limits) {
    const Duration most = std::chrono::duration_cast<Duration>(ms(10'000) * limit) + tolerance;
    for (size_t look = 200; look < had[session].size(); ++look)
      EXPECT_LE(had[session][look] - had[session][look - 200], most) << session << " at " << look * 50 << " ms";
  }
}

TEST(Token, RequestsOfTwoAreHeldWithinAPoint) {
  for (int tenths = 1; tenths <= 9; ++tenths) {
    const double part = tenths / 10.0;
    TestDevice device("token");
    device.add(1, with(part, 1));
    device.add(2, with(1 - part, 1));
    const Minute minute(device);
    EXPECT_THAT(minute.share(1), DoubleNear(part, 0.01)) << part;
    EXPECT_THAT(minute.share(2), DoubleNear(1 - part, 0.01)) << part;
    EXPECT_EQ(device.most_leases(), 1u);
  }
}

TEST(Token, LimitsOfTwoAreHeldWithinAPoint) {
  for (int tenths = 1; tenths <= 9; ++tenths) {
    const double part = tenths / 10.0;
    TestDevice device("token");
    device.add(1, with(part, part));
    device.add(2, with(0, 0.05));
    const Minute minute(device);
    EXPECT_THAT(minute.share(1), DoubleNear(part, 0.01)) << part;
    EXPECT_THAT(minute.share(2), DoubleNear(0.05, 0.01)) << part;
  }
}

TEST(Token, SharesOfThreeAreHeldWithinAPoint) {
  const double parts[][3] = {{0.1, 0.2, 0.7}, {0.3, 0.3, 0.4}, {0.5, 0.1, 0.1}, {0.25, 0.6, 0.1}, {0.8, 0.1, 0.1}};
  for (const auto& part : parts) {
    TestDevice device("token");
    for (uint64_t i = 0; i < 3; ++i) device.add(i + 1, with(part[i], part[i], {.kernel = ms(0.7 + 0.4 * i)}));
    const Minute minute(device);
    for (uint64_t i = 0; i < 3; ++i) EXPECT_THAT(minute.share(i + 1), DoubleNear(part[i], 0.01)) << i;
  }
}

// With 50 ms each, the others would have half of the device before it is their turn by what is missing.
TEST(Token, RequestIsHeldAmongManyThatRequestNothing) {
  TestDevice device("token");
  device.add(1, with(0.6, 1));
  for (uint64_t session = 2; session <= 100; ++session) device.add(session, with(0, 1));
  device.run_for(ms(10'000));
  const Duration before = device.busy(1);
  device.run_for(ms(20'000));
  EXPECT_THAT((device.busy(1) - before) / ms(1) / 20'000.0, DoubleNear(0.6, 0.01));
  for (uint64_t session = 2; session <= 100; ++session) EXPECT_LT(device.longest_wait(session), ms(11'000)) << session;
}

TEST(Token, RequestIsHeldAmongManyThatRequestLittle) {
  TestDevice device("token");
  device.add(1, with(0.8, 1));
  for (uint64_t session = 2; session <= 101; ++session) device.add(session, with(0.001, 1));
  device.run_for(ms(30'000));
  const double before = static_cast<double>(device.busy(1).count());
  device.run_for(ms(30'000));
  EXPECT_NEAR((static_cast<double>(device.busy(1).count()) - before) / 30e9, 0.8, 0.02);
}

TEST(Token, WhatNobodyRequestsGoesToWhoHasLeast) {
  TestDevice device("token");
  device.add(1, with(0.5, 1));
  device.add(2, with(0, 1));
  device.add(3, with(0, 1));
  const Minute minute(device);
  EXPECT_THAT(minute.share(1), DoubleNear(0.5, 0.01));
  EXPECT_THAT(minute.share(2), DoubleNear(0.25, 0.01));
}

TEST(Token, LimitsAreKeptInEachWindow) {
  TestDevice device("token");
  device.add(1, with(0.2, 0.3, {.kernel = ms(3)}));
  device.add(2, with(0.4, 0.6, {.kernel = ms(1), .kernels = 20, .gap = ms(5)}));
  device.add(3, with(0, 0.1, {.kernel = ms(20)}));
  expect_limits_kept(device, {{1, 0.3}, {2, 0.6}, {3, 0.1}}, ms(250));
}

TEST(Token, LimitHoldsForOneAlone) {
  TestDevice device("token");
  device.add(1, with(0, 0.25));
  expect_limits_kept(device, {{1, 0.25}}, ms(101));
  EXPECT_THAT(share(device, 1), DoubleNear(0.25, 0.01));
}

TEST(Token, OneAloneWithoutALimitLosesNothing) {
  TestDevice device("token");
  device.add(1, with(0, 1, {.kernel = ms(1), .kernels = 10, .gap = ms(3)}));
  device.run_for(ms(1300 - 3));
  EXPECT_EQ(device.busy(1), ms(1000));
}

// Who pauses is not counted while it pauses, so that a limit bounds what it uses.
TEST(Token, PausesDoNotCountAgainstTheLimit) {
  TestDevice device("token");
  device.add(1, with(0, 0.3, {.kernel = ms(5), .kernels = 4, .gap = ms(80)}));
  device.run_for(ms(30'000));
  EXPECT_GT(share(device, 1), 0.19);
}

TEST(Token, LesseesOfAJobShareItsLimit) {
  TestDevice device("token");
  for (const uint64_t session : {1, 2}) {
    Program program = with(0, 0.4);
    program.tenant.job = {7};
    device.add(session, program);
  }
  const Minute minute(device);
  EXPECT_THAT(minute.share(1) + minute.share(2), DoubleNear(0.4, 0.01));
  EXPECT_THAT(minute.share(1), DoubleNear(0.2, 0.01));
}

TEST(Token, TaskAfterTaskDoesNotShedUsage) {
  TestDevice device("token");
  double had = 0;
  for (uint64_t session = 1; session <= 300; ++session) {
    Program program = with(0, 0.2);
    program.tenant.job = {7};
    program.starts = device.now();
    device.add(session, program);
    device.run_for(ms(100));
    had += static_cast<double>(device.busy(session).count());
    device.remove(session);
  }
  EXPECT_THAT(had / 30e9, DoubleNear(0.2, 0.015));
}

// What its worker says of bursts does not make a token longer.
TEST(Token, WhoClaimsLongBurstsHasNoLongerTokens) {
  Token token;
  const auto lend = [&](TimePoint now) {
    std::vector<LeaseOrder> orders;
    token.decide(now, orders);
    return orders.empty() ? Duration{} : std::get<Lend>(orders[0]).until - now;
  };
  token.joined(lessee(1), {.job = {1}}, TimePoint{});
  token.pending(lessee(1), TimePoint{});
  token.served(lessee(1), {.longest_burst = ms(5000), .merged_burst = ms(9000), .longest_gap = ms(1)}, TimePoint{});
  TimePoint now{};
  for (int round = 0; round < 5; ++round) {
    const Duration length = lend(now);
    EXPECT_EQ(length, ms(250));
    now += length;
    token.returned(lessee(1), now);
  }
}

// Alone it keeps the token, and pauses of 20 ms are not part of its bursts of 30 ms.
TEST(Token, LongPausesDoNotMergeBursts) {
  Token token;
  const auto at = [](double milliseconds) { return TimePoint(ms(milliseconds)); };
  std::vector<LeaseOrder> orders;
  token.joined(lessee(1), {.job = {1}}, at(0));
  token.joined(lessee(2), {.job = {2}}, at(0));
  for (int burst = 0; burst < 100; ++burst) {
    token.pending(lessee(1), at(burst * 50));
    token.decide(at(burst * 50), orders);
    token.drained(lessee(1), at(burst * 50 + 30));
  }
  ASSERT_EQ(orders.size(), 1u);
  token.returned(lessee(1), at(5000));
  token.pending(lessee(1), at(5000));
  orders.clear();
  token.decide(at(5000), orders);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(std::get<Lend>(orders[0]).until, at(5000 + (30 + 250) / 2));
}

// Bursts of 60 ms: a quota is not cut in the middle of one.
TEST(Token, BurstsAreKeptWhole) {
  TestDevice device("token");
  for (const uint64_t session : {1, 2})
    device.add(session, with(0.5, 1, {.kernel = ms(20), .kernels = 3, .gap = ms(1)}));
  device.run_for(ms(20'000));
  for (const uint64_t session : {1, 2}) {
    const double bursts_a_lease =
        static_cast<double>(device.bursts_done(session)) / static_cast<double>(device.leases(session));
    EXPECT_GT(bursts_a_lease, 0.99);
  }
  EXPECT_THAT(share(device, 1), DoubleNear(share(device, 2), 0.02));
}

TEST(Token, NextDoesNotWaitForTheDrainWhereTheyOverlap) {
  const auto both = [](const char* policy) {
    TestDevice device(policy);
    device.add(1, with(0, 1, {.kernel = ms(900)}));
    device.add(2, with(0, 1, {.kernel = ms(1)}));
    device.run_for(ms(10'000));
    return std::pair(device.most_leases(), device.busy(2));
  };
  EXPECT_EQ(both("token").first, 1u);
  EXPECT_EQ(both("token:overlap").first, 2u);
  EXPECT_GT(both("token:overlap").second, both("token").second);
}

}  // namespace
}  // namespace heddle::policy
