#pragma once

// How long a test waits, counted in time for which its machine ran. A virtual machine may be stopped for minutes, and
// the programs that the test waits for are stopped with it: by the clock alone the test would give up on programs that
// had no time to run.

#include <algorithm>

#include "core/clock.h"

namespace heddle {

class Patience {
 public:
  explicit Patience(Duration limit, const Clock& clock = monotonic())
      : clock_(clock), left_(limit), last_(clock.now()) {}

  // Called once in each round of the wait. A round that takes longer than kLongestRound counts as kLongestRound: for
  // the rest of it the machine was stopped.
  bool is_over() {
    const TimePoint now = clock_.now();
    left_ -= std::min(now - last_, kLongestRound);
    last_ = now;
    return left_ < Duration{};
  }

  static constexpr Duration kLongestRound = std::chrono::seconds(5);

 private:
  static const Clock& monotonic() {
    static const MonotonicClock clock;
    return clock;
  }

  const Clock& clock_;
  Duration left_;
  TimePoint last_;
};

}  // namespace heddle
