#pragma once

#include <algorithm>

#include "policy/deadline/model_state.h"

namespace heddle::policy {

// A batch task that was placed keeps other batch tasks off its device, so that they run on different ones. It is
// awaited for as long as a worker may take to start, and from then on for a turn; one that has not begun by then may
// never do so: a notebook, a program that waits for another. The others do not wait for that.
class AwaitedBatch {
 public:
  explicit AwaitedBatch(const ModelState& state) : state_(state) {}

  static constexpr Duration kWorkerStarts = std::chrono::seconds(2);

  // Whether a batch task has work on the device, or is awaited there.
  bool there(const ModelState::Place& place, TimePoint now) const {
    return std::any_of(place.lessees.begin(), place.lessees.end(), [&](Lessee lessee) {
      const ModelState::Member& member = *state_.find(lessee);
      return !state_.is_request(member) && (member.working || is_awaited(member, now));
    });
  }

  // When that may change although nothing happens.
  std::optional<TimePoint> next(const ModelState::Place& place, TimePoint now) const {
    std::optional<TimePoint> next;
    for (const Lessee lessee : place.lessees) {
      const ModelState::Member& member = *state_.find(lessee);
      if (!state_.is_request(member) && is_awaited(member, now)) next = earlier(next, until(member));
    }
    return next;
  }

 private:
  static TimePoint until(const ModelState::Member& member) {
    return member.since + (member.ready ? kTurnLength : kWorkerStarts);
  }
  static bool is_awaited(const ModelState::Member& member, TimePoint now) {
    return member.fresh && now < until(member);
  }

  const ModelState& state_;
};

}  // namespace heddle::policy
