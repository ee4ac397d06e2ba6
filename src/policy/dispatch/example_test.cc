// The dispatch example of docs/writing-a-policy.md: compiled and exercised here; placement/example_test.cc compares it
// with what the page quotes.

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/dispatch/test_device.h"
#include "policy/dispatch/turn_taking.h"

namespace heddle::policy {

// Stride scheduling: each job has a pass, which moves on by what it uses over its weight; the job furthest back is
// next, and of equal ones the lessee that has waited longest.
class Stride : public TurnTaking {
 protected:
  const Lessees::Member& choose(const Lessees& lessees) override {
    const Lessees::Member* best = nullptr;
    for (const Lessees::Member& member : lessees.members()) {
      if (!member.waits()) continue;
      double& pass = member.job->balance;
      pass = std::max(pass, pass_);  // who comes, or comes back, has not saved up
      if (best && (pass > best->job->balance || (pass == best->job->balance && member.since >= best->since))) continue;
      best = &member;
    }
    pass_ = best->job->balance;
    return *best;
  }
  Duration slice(const Lessees::Member&, const Lessees&) const override { return std::chrono::milliseconds(10); }
  void used(Lessees::Job& job, Duration /*amount*/, Duration contended) override {
    job.balance += static_cast<double>(contended.count()) / static_cast<double>(job.weight);
  }

 private:
  double pass_ = 0;  // of the job that was chosen last, as it was then
};

namespace {

TEST(StrideDispatch, FollowsWeightsWhateverTheKernelsAreLike) {
  TestDevice device(std::make_unique<Stride>());
  device.add(1, {.kernel = ms(40), .tenant = {.weight = 1}});
  device.add(2, {.kernel = ms(1), .tenant = {.weight = 3}});
  device.run_for(ms(30'000));
  EXPECT_EQ(device.most_leases(), 1u);
  EXPECT_NEAR(static_cast<double>(device.busy(1).count()) / static_cast<double>(device.busy().count()), 0.25, 0.02);
}

// Without the pass of who was chosen last, the third would have the device alone until it had caught up.
TEST(StrideDispatch, WhoComesLaterDoesNotCatchUp) {
  TestDevice device(std::make_unique<Stride>());
  device.add(1, {.kernel = ms(1)});
  device.add(2, {.kernel = ms(1)});
  device.run_for(ms(10'000));
  device.add(3, {.kernel = ms(1), .starts = device.now()});
  const Duration before = device.busy(3);
  device.run_for(ms(3'000));
  EXPECT_NEAR(static_cast<double>((device.busy(3) - before).count()) / 3e9, 1.0 / 3, 0.02);
}

}  // namespace
}  // namespace heddle::policy
