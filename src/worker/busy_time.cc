#include "worker/busy_time.h"

#include <algorithm>
#include <iterator>

namespace heddle::worker {

void BusyTime::add(TimePoint began, TimePoint ended) {
  Interval joined{std::max(began, horizon_), ended};
  if (joined.end <= joined.begin) return;
  // Those that it touches; mostly the last one or none.
  auto last = recent_.end();
  while (last != recent_.begin() && std::prev(last)->begin > joined.end) --last;
  auto first = last;
  Duration counted{};
  while (first != recent_.begin() && std::prev(first)->end >= joined.begin) {
    --first;
    counted += first->end - first->begin;
  }
  if (first == last) return insert(first, joined);
  joined = {std::min(joined.begin, first->begin), std::max(joined.end, std::prev(last)->end)};
  total_ += joined.end - joined.begin - counted;
  *first = joined;
  recent_.erase(std::next(first), last);
}

void BusyTime::insert(std::vector<Interval>::iterator at, const Interval& interval) {
  total_ += interval.end - interval.begin;
  recent_.insert(at, interval);
  if (recent_.size() < kRemembered) return;
  const auto kept = recent_.begin() + kRemembered / 2;
  horizon_ = std::prev(kept)->end;
  recent_.erase(recent_.begin(), kept);
}

}  // namespace heddle::worker
