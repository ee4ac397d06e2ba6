#pragma once

// How long a test waits, in time that its machine ran. A virtual machine may stand still for minutes and takes what is
// waited for with it: a wait of two minutes was over after half a minute of theirs.

#include <algorithm>

#include "core/clock.h"

namespace heddle {

class Patience {
 public:
  explicit Patience(Duration limit, const Clock& clock = monotonic())
      : clock_(clock), left_(limit), last_(clock.now()) {}

  // Asked in every round of the wait. A round that was longer than it can be on a machine that runs counts as that.
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
