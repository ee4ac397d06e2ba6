#include "client/device/recent_launches.h"

namespace heddle::client {

void RecentLaunches::note(uint32_t stream, uint64_t sequence, const char* name) {
  const std::lock_guard lock(mutex_);
  launches_[next_] = {sequence, stream, name};
  next_ = (next_ + 1) % kRemembered;
}

const char* RecentLaunches::oldest_unfinished() const {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kRemembered; ++i) {
    const Launch& launch = launches_[(next_ + i) % kRemembered];
    if (launch.sequence != 0 && !ring_.stream_reached(launch.stream, launch.sequence)) return launch.name;
  }
  return nullptr;
}

}  // namespace heddle::client
