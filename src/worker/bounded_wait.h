#pragma once

#include <algorithm>
#include <optional>

#include "core/clock.h"

namespace heddle::worker {

// Something is waited for, look by look, and no longer than the patience with it lasts.
class BoundedWait {
 public:
  // It is not there yet. False: it was waited for long enough, and is no more.
  bool goes_on(TimePoint now, Duration patience) {
    if (!since_) since_ = now;
    patience_ = patience;
    if (now - *since_ < patience) return true;
    since_.reset();
    return false;
  }
  void end() { since_.reset(); }
  // Until the next look has to be; none where nothing is waited for.
  std::optional<Duration> left(TimePoint now) const {
    if (!since_) return std::nullopt;
    return std::max(*since_ + patience_ - now, Duration::zero());
  }

 private:
  std::optional<TimePoint> since_;
  Duration patience_{};
};

}  // namespace heddle::worker
