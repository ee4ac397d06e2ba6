#include "core/clock.h"

#include <ctime>

namespace heddle {

TimePoint MonotonicClock::now() const {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return TimePoint(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
}

}  // namespace heddle
