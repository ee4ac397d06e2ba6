#include "device/software/model/copy_engines.h"

#include <algorithm>

namespace heddle::software {

Interval reserve(BoardLock& lock, uint32_t engine, TimePoint ready, Duration duration, TimePoint now) {
  int64_t& until = lock.header().copies_until_ns[engine];
  // Every client has at most one piece per direction in line; anything later was not written by a sane one.
  TimePoint latest = now + kMostClients * kLongestPiece;
  TimePoint start = std::max(ready, std::min(TimePoint(Duration(until)), latest));
  TimePoint end = start + duration;
  until = end.time_since_epoch().count();
  return {start, end};
}

}  // namespace heddle::software
