// Five hundred programs on one device: nobody waits for longer than follows from what the policy says of itself. With n
// lessees whose kernels take at most K:
//
//   fs      a round in which each has its slice and what drains:            (n - 1) (1 ms + K)
//   tfs     its debt of one turn comes back at 1/n of the time, then each   2 n (5 ms + K) + 2 epochs
//           other may have a turn
//   las     each other one until it has attained more than this one, which  (n - 1) 2 (10 ms + K)
//           has had one turn: both fade alike, so it stays behind
//   las:n   the same, n others at a time                                    the same / n
//   token   after a window (10 s) without the device it is first in line    20 s + (n - 1) K
//           behind those that have waited longer, with a token each of 1/n
//           of the window; bursts are no longer than that here
//
// The longest wait of each is a property of the test's report (--gtest_output), and stands in
// docs/results/2026-11-24-many-sessions.md.

#include <gtest/gtest.h>

#include <random>

#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

constexpr uint64_t kMany = 500;
constexpr Duration kLongestKernel = ms(5);

// Some always have work, others have bursts of up to four kernels and pauses of up to 50 ms.
Program drawn_program(std::mt19937_64& random) {
  const auto pick = [&](uint64_t least, uint64_t most) {
    return static_cast<double>(least + random() % (most - least + 1));
  };
  Program program;
  program.kernel = ms(pick(5, 50) / 10);
  if (random() % 2 == 0) {
    program.kernels = static_cast<uint64_t>(pick(1, 4));
    program.gap = ms(pick(0, 50));
  }
  program.starts = TimePoint{ms(pick(0, 200))};
  return program;
}

struct Promise {
  const char* policy;
  Duration longest_wait;
  double request;
};

class ManyLessees : public testing::TestWithParam<Promise> {};

TEST_P(ManyLessees, WaitNoLongerThanThePolicyPromises) {
  const auto [policy, bound, request] = GetParam();
  std::mt19937_64 random(1);
  TestDevice device(policy);
  for (uint64_t session = 1; session <= kMany; ++session) {
    Program program = drawn_program(random);
    program.tenant.request = request;
    device.add(session, program);
  }
  device.run_for(bound + bound / 2);  // who starves has waited for longer than the bound by then
  Duration longest{};
  for (uint64_t session = 1; session <= kMany; ++session) {
    EXPECT_GT(device.leases(session), 0u) << session;
    EXPECT_LE(device.longest_wait(session), bound) << session;
    longest = std::max(longest, device.longest_wait(session));
  }
  RecordProperty("longest_wait_ms", std::to_string(longest / std::chrono::milliseconds(1)));
}

constexpr double kEqual = 1.0 / kMany;
constexpr Duration many(uint64_t count, Duration each) {
  return static_cast<int64_t>(count) * each;
}

INSTANTIATE_TEST_SUITE_P(Dispatch, ManyLessees,
                         testing::Values(Promise{"fs", many(kMany - 1, ms(1) + kLongestKernel), 0},
                                         Promise{"tfs", many(2 * kMany, ms(5) + kLongestKernel) + ms(200), 0},
                                         Promise{"las", many(kMany - 1, 2 * (ms(10) + kLongestKernel)), 0},
                                         Promise{"las:4", many(kMany - 1, 2 * (ms(10) + kLongestKernel)) / 4, 0},
                                         Promise{"token", ms(20'000) + many(kMany - 1, kLongestKernel), kEqual},
                                         Promise{"token", ms(20'000) + many(kMany - 1, kLongestKernel), 0},
                                         Promise{"token:overlap", ms(20'000) + many(kMany - 1, kLongestKernel),
                                                 kEqual}),
                         [](const testing::TestParamInfo<Promise>& instance) {
                           std::string name = instance.param.policy;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name + (instance.param.request > 0 ? "_requests" : "");
                         });

// Under `open` there is nothing to wait for in heddled.
TEST(ManyLesseesUnderOpen, NeedNoLease) {
  const auto open = std::move(make_dispatch("open")).value();
  EXPECT_FALSE(open->exclusive());
  std::vector<LeaseOrder> orders;
  for (uint64_t session = 1; session <= kMany; ++session) {
    open->joined(lessee(session), {}, TimePoint{});
    open->pending(lessee(session), TimePoint{});
  }
  open->decide(TimePoint{}, orders);
  EXPECT_TRUE(orders.empty());
}

}  // namespace
}  // namespace heddle::policy
