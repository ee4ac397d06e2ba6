#pragma once

#include <optional>
#include <utility>

#include "policy/sla.h"

namespace heddle::daemon {

// The request of a lessee, while it has one: a burst of a user-facing job, from its arrival to its end. Whether it was
// met goes to the job's books. Its worker says that a burst has ended a quarter of a millisecond later.
class RequestClock {
 public:
  // A task was begun, and had no device yet: its first burst arrived then.
  void came(TimePoint at) { came_ = at; }
  // A burst begins; nothing where one is open.
  void begin(TimePoint now) {
    if (!arrived_) arrived_ = std::exchange(came_, std::nullopt).value_or(now);
  }
  // It may be worked on now.
  void issue(TimePoint now) {
    if (arrived_ && !issued_) issued_ = now;
  }
  void end(policy::Sla& sla, Duration slo, TimePoint now) {
    if (arrived_) sla.request_ended(now - *arrived_, issued_.value_or(now) - *arrived_, slo);
    arrived_ = issued_ = {};
  }
  // It will never end.
  void miss(policy::Sla& sla) {
    if (arrived_) sla.request_missed();
    arrived_ = issued_ = {};
  }

 private:
  std::optional<TimePoint> came_, arrived_, issued_;
};

}  // namespace heddle::daemon
