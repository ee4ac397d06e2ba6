// Random events, by seed: whatever happens, no more leases are out than the policy lends at a time, nobody who left is
// lent the device, and everybody with work is lent it in the end.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

class RandomLessees {
 public:
  RandomLessees(const char* policy, size_t most, uint64_t seed)
      : random_(seed), dispatch_(std::move(make_dispatch(policy)).value()), most_(most) {}

  void step() {
    now_ += Duration(static_cast<int64_t>(pick(4) == 0 ? pick(40'000'000) : pick(2'000'000)));
    for (uint64_t events = pick(4); events > 0; --events) event();
    check_next();
    decide();
  }

  // No more events but what a worker must do, and everybody who has work is lent the device.
  void expect_everybody_gets_a_turn() {
    std::set<Lessee> waits;
    for (const auto& [lessee, state] : lessees_) {
      if (state.working && !state.lent) waits.insert(lessee);
    }
    const TimePoint end = now_ + std::chrono::seconds(60);
    lent_.clear();
    while (now_ < end && !std::includes(lent_.begin(), lent_.end(), waits.begin(), waits.end())) {
      TimePoint next = now_ + ms(1);
      if (const auto wants = dispatch_->next(now_)) next = std::clamp(*wants, now_ + Duration(1), next);
      const Duration passed = next - now_;
      now_ = next;
      for (auto& [lessee, state] : lessees_) {
        if (state.lent) dispatch_->served(lessee, {.busy = state.working ? passed : Duration{}}, now_);
      }
      for (auto& [lessee, state] : lessees_) {
        if (state.lent && (state.stopping || now_ >= state.until)) give_back(lessee, state);
      }
      decide();
    }
    for (const Lessee waiting : waits) EXPECT_TRUE(lent_.contains(waiting)) << waiting.session.value;
  }

  const std::vector<std::string>& log() const { return log_; }

 private:
  struct State {
    bool working = false, lent = false, stopping = false;
    TimePoint until{};
  };

  uint64_t pick(uint64_t below) { return random_() % below; }

  void event() {
    if (lessees_.empty() || (lessees_.size() < 12 && pick(12) == 0)) return join();
    auto it = lessees_.begin();
    std::advance(it, pick(lessees_.size()));
    auto& [lessee, state] = *it;
    switch (pick(16)) {
      case 0:
        dispatch_->left(Lessee(lessee), now_);
        lessees_.erase(it);
        return;
      case 1:
      case 2:
      case 3:
        if (!state.working || !state.lent) return;
        state.working = false;
        return dispatch_->drained(lessee, now_);
      case 4:  // its worker gives it back for a reason of its own, or died
        if (state.lent && pick(4) == 0) give_back(lessee, state);
        return;
      case 5:
      case 6:
      case 7:
        if (state.lent)
          dispatch_->served(lessee, {.busy = Duration(static_cast<int64_t>(pick(3'000'000))), .longest_burst = ms(1)},
                            now_);
        return;
      case 8:
      case 9:
      case 10:
        if (state.lent && (state.stopping || now_ >= state.until)) give_back(lessee, state);
        return;
      default:
        state.working = true;
        return dispatch_->pending(lessee, now_);
    }
  }

  void join() {
    const Lessee lessee{{++sessions_}, static_cast<uint32_t>(pick(2))};
    const double request = static_cast<double>(pick(5)) / 10;
    lessees_[lessee] = {};
    dispatch_->joined(lessee,
                      {.job = {1 + sessions_ / (1 + pick(3))},
                       .weight = static_cast<double>(1 + pick(10)) / 2,
                       .request = request,
                       .limit = std::max(0.1, request + static_cast<double>(pick(6)) / 10)},
                      now_);
  }

  void give_back(Lessee lessee, State& state) {
    state.lent = state.stopping = false;
    dispatch_->returned(lessee, now_);
  }

  void check_next() {
    const auto next = dispatch_->next(now_);
    EXPECT_GE(next.value_or(now_), now_);
  }

  void decide() {
    std::vector<LeaseOrder> orders;
    dispatch_->decide(now_, orders);
    for (const LeaseOrder& order : orders) {
      if (const auto* lend = std::get_if<Lend>(&order)) {
        const auto it = lessees_.find(lend->to);
        ASSERT_NE(it, lessees_.end()) << "lent to one that left";
        EXPECT_FALSE(it->second.lent);
        EXPECT_TRUE(it->second.working) << "lent to one without work";
        EXPECT_GT(lend->until, now_);
        const auto out =
            std::count_if(lessees_.begin(), lessees_.end(), [](const auto& each) { return each.second.lent; });
        EXPECT_LT(static_cast<size_t>(out), most_) << "too many leases are out";
        it->second = {true, true, false, lend->until};
        lent_.insert(lend->to);
        log_.push_back("lend " + std::to_string(lend->to.session.value) + " " +
                       std::to_string(lend->until.time_since_epoch().count()));
      } else {
        const Lessee from = std::get<Withdraw>(order).from;
        ASSERT_TRUE(lessees_.contains(from));
        EXPECT_TRUE(lessees_[from].lent);
        EXPECT_FALSE(lessees_[from].stopping) << "withdrawn twice";
        lessees_[from].stopping = true;
        log_.push_back("withdraw " + std::to_string(from.session.value));
      }
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<Dispatch> dispatch_;
  const size_t most_;  // leases at a time
  std::map<Lessee, State> lessees_;
  std::set<Lessee> lent_;
  std::vector<std::string> log_;
  TimePoint now_{};
  uint64_t sessions_ = 0;
};

struct ManyAtATime {
  const char* policy;
  size_t most = 1;
};

class AnyLessees : public testing::TestWithParam<ManyAtATime> {};

TEST_P(AnyLessees, HaveTheDeviceAFewAtATimeAndEachInTheEnd) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomLessees run(GetParam().policy, GetParam().most, seed);
    for (int step = 0; step < 400 && !testing::Test::HasFailure(); ++step) run.step();
    run.expect_everybody_gets_a_turn();
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(AnyLessees, AreServedTheSameEachTime) {
  const auto orders_of = [](uint64_t seed) {
    RandomLessees run(GetParam().policy, GetParam().most, seed);
    for (int step = 0; step < 300; ++step) run.step();
    return run.log();
  };
  for (uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(orders_of(seed), orders_of(seed));
}

INSTANTIATE_TEST_SUITE_P(Dispatch, AnyLessees,
                         testing::Values(ManyAtATime{"fs"}, ManyAtATime{"tfs"}, ManyAtATime{"las"},
                                         ManyAtATime{"las:1"}, ManyAtATime{"las:2", 2}, ManyAtATime{"las:5", 5},
                                         ManyAtATime{"token"}, ManyAtATime{"fifo"}, ManyAtATime{"priority:soft"},
                                         ManyAtATime{"elastic:soft"}));

}  // namespace
}  // namespace heddle::policy
