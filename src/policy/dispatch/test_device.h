#pragma once

// A simulated device with programs on it, for tests and benchmarks of dispatch policies: what heddled and the workers
// do with a policy's orders, in virtual time. Kernels are never interrupted, a worker has one in flight, and a lease
// that ends or is withdrawn is returned when it is done. Leases that overlap slow nobody down.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "policy/dispatch/table.h"

namespace heddle::policy {

constexpr Duration ms(double milliseconds) {
  return Duration(static_cast<int64_t>(milliseconds * 1e6));
}
constexpr TimePoint moment(double milliseconds) {
  return TimePoint(ms(milliseconds));
}
constexpr Lessee lessee(uint64_t session) {
  return {{session}, 0};
}

// Bursts of `kernels` kernels that take `kernel` each, and `gap` on the host between them.
struct Program {
  Duration kernel = ms(1);
  uint64_t kernels = 1'000'000'000;  // without end
  Duration gap{};
  TimePoint starts{};
  Tenant tenant;
};

class TestDevice {
 public:
  explicit TestDevice(const char* policy) : TestDevice(std::move(make_dispatch(policy)).value()) {}
  explicit TestDevice(std::unique_ptr<Dispatch> dispatch) : dispatch_(std::move(dispatch)) {}

  void add(uint64_t session, Program program) {
    if (program.tenant.job.value == 0) program.tenant.job = {session};
    programs_[lessee(session)] = {.program = program, .arrives = program.starts};
    dispatch_->joined(lessee(session), program.tenant, now_);
  }
  // Ends it, at once.
  void remove(uint64_t session) {
    finish_kernel_early(programs_.at(lessee(session)));
    say_served();
    dispatch_->left(lessee(session), now_);
    programs_.erase(lessee(session));
    act();
  }

  void run_until(TimePoint end) {
    act();
    while (true) {
      TimePoint next = next_event();
      if (next > end) break;
      EXPECT_GE(next, now_);
      EXPECT_LT(++rounds_at_[next], 100) << "no time passes at " << next.time_since_epoch().count();
      rounds_at_.erase(rounds_at_.begin(), rounds_at_.find(next));
      pass_to(next);
      step();
      act();
    }
    pass_to(end);
  }
  void run_for(Duration time) { run_until(now_ + time); }

  TimePoint now() const { return now_; }
  bool has(uint64_t session) const { return programs_.contains(lessee(session)); }
  Dispatch& dispatch() { return *dispatch_; }
  // Device time so far; of that, while every program had work.
  Duration busy(uint64_t session) const { return programs_.at(lessee(session)).busy; }
  Duration contended(uint64_t session) const { return programs_.at(lessee(session)).contended; }
  // With at least one kernel, and with work of anybody's.
  Duration busy() const { return busy_; }
  Duration wanted() const { return wanted_; }
  uint64_t leases(uint64_t session) const { return programs_.at(lessee(session)).leases; }
  uint64_t bursts_done(uint64_t session) const { return programs_.at(lessee(session)).bursts; }
  // From when it had work to when it was lent the device, or to now where it still waits.
  Duration longest_wait(uint64_t session) const {
    const State& state = programs_.at(lessee(session));
    return std::max(state.longest_wait, state.waits_since ? now_ - *state.waits_since : Duration{});
  }
  size_t most_leases() const { return most_leases_; }

 private:
  struct State {
    Program program;
    std::optional<TimePoint> arrives;  // of the next burst, where it has none
    uint64_t left = 0;                 // kernels of the present burst
    std::optional<TimePoint> ends;     // of the kernel in flight
    std::optional<TimePoint> until;    // holds the lease
    bool stopping = false, whole_bursts = false, fresh = false;
    std::optional<TimePoint> waits_since;
    TimePoint burst_began{}, merged_began{}, last_ended{};
    Duration busy{}, contended{}, said{}, longest_wait{}, longest_burst{}, merged_burst{}, longest_gap{};
    uint64_t leases = 0, bursts = 0, bursts_said = 0;

    bool has_work() const { return left > 0 || ends; }
  };

  TimePoint next_event() const {
    TimePoint next = TimePoint::max();
    if (const auto wants = dispatch_->next(now_)) {
      EXPECT_GE(*wants, now_);
      next = *wants;
    }
    for (const auto& [lessee, state] : programs_) {
      if (state.arrives) next = std::min(next, std::max(now_, *state.arrives));
      if (state.ends) next = std::min(next, *state.ends);
      if (state.until && !state.ends) next = std::min(next, std::max(now_, *state.until));
    }
    return next;
  }

  void pass_to(TimePoint time) {
    const Duration passed = time - now_;
    size_t in_flight = 0, with_work = 0;
    for (const auto& [lessee, state] : programs_) {
      in_flight += state.ends.has_value();
      with_work += state.has_work();
    }
    for (auto& [lessee, state] : programs_) {
      if (!state.ends) continue;
      state.busy += passed;
      if (with_work == programs_.size()) state.contended += passed;
    }
    if (in_flight > 0) busy_ += passed;
    if (with_work > 0) wanted_ += passed;
    now_ = time;
  }

  void step() {
    for (auto& [lessee, state] : programs_) {
      if (state.ends && *state.ends <= now_) kernel_ended(lessee, state);
      if (state.arrives && *state.arrives <= now_) burst_arrives(lessee, state);
      if (state.until && *state.until <= now_) state.stopping = true;
      go_on(lessee, state);
    }
  }

  void kernel_ended(Lessee lessee, State& state) {
    state.ends.reset();
    if (--state.left > 0) return;
    ++state.bursts;
    state.last_ended = now_;
    state.longest_burst = std::max(state.longest_burst, now_ - state.burst_began);
    state.merged_burst = std::max(state.merged_burst, now_ - state.merged_began);
    state.arrives = now_ + state.program.gap;
    if (state.program.gap == Duration{}) return burst_arrives(lessee, state);
    say_served();
    dispatch_->drained(lessee, now_);
  }

  void burst_arrives(Lessee lessee, State& state) {
    state.arrives.reset();
    state.left = state.program.kernels;
    if (state.bursts > 0) state.longest_gap = std::max(state.longest_gap, now_ - state.last_ended);
    state.burst_began = now_;
    if (state.bursts == 0 || now_ - state.last_ended > ms(2)) state.merged_began = now_;
    if (!state.until) state.waits_since = now_;
    dispatch_->pending(lessee, now_);
  }

  // Issues the next kernel, or returns the lease.
  void go_on(Lessee lessee, State& state) {
    if (!state.until || state.ends) return;
    const bool at_burst = state.left == state.program.kernels;
    if (state.whole_bursts && at_burst && !state.fresh && now_ + state.longest_burst >= *state.until)
      state.stopping = true;
    if (state.stopping) {
      state.until.reset();
      if (state.left > 0) state.waits_since = now_;
      say_served();
      dispatch_->returned(lessee, now_);
    } else if (state.left > 0) {
      state.fresh = false;
      state.ends = now_ + state.program.kernel;
      if (at_burst) state.burst_began = now_;
    }
  }

  void act() {
    say_served();
    std::vector<LeaseOrder> orders;
    dispatch_->decide(now_, orders);
    for (const LeaseOrder& order : orders) {
      if (const auto* lend = std::get_if<Lend>(&order)) carry_out(*lend);
      if (const auto* withdraw = std::get_if<Withdraw>(&order)) carry_out(*withdraw);
    }
    size_t leases = 0;
    for (const auto& [lessee, state] : programs_) leases += state.until.has_value();
    most_leases_ = std::max(most_leases_, leases);
  }

  void carry_out(const Lend& lend) {
    const auto it = programs_.find(lend.to);
    ASSERT_NE(it, programs_.end()) << "lent to one that is not there";
    State& state = it->second;
    ASSERT_FALSE(state.until) << "lent what it holds";
    EXPECT_GT(lend.until, now_);
    if (state.waits_since) state.longest_wait = std::max(state.longest_wait, now_ - *state.waits_since);
    state.waits_since.reset();
    state.until = lend.until;
    state.whole_bursts = lend.whole_bursts;
    state.stopping = false;
    state.fresh = true;
    state.burst_began = state.merged_began = now_;  // what it waited is no part of its burst
    ++state.leases;
    go_on(lend.to, state);
  }

  void carry_out(const Withdraw& withdraw) {
    State& state = programs_.at(withdraw.from);
    EXPECT_TRUE(state.until) << "withdrawn what it does not hold";
    state.stopping = true;
    if (state.ends) return;
    go_on(withdraw.from, state);
    act();
  }

  void say_served() {
    for (auto& [lessee, state] : programs_) {
      if (state.busy == state.said) continue;
      dispatch_->served(lessee,
                        {.busy = state.busy - std::exchange(state.said, state.busy),
                         .bursts = state.bursts - std::exchange(state.bursts_said, state.bursts),
                         .longest_burst = state.longest_burst,
                         .merged_burst = state.merged_burst,
                         .longest_gap = state.longest_gap},
                        now_);
    }
  }

  void finish_kernel_early(State& state) { state.ends.reset(); }

  std::unique_ptr<Dispatch> dispatch_;
  std::map<Lessee, State> programs_;
  std::map<TimePoint, int> rounds_at_;
  TimePoint now_{};
  Duration busy_{}, wanted_{};
  size_t most_leases_ = 0;
};

// Of what each had by its weight; 1 is even (Rain section 5.1).
inline double jain(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace heddle::policy
