#pragma once

#include <cstddef>
#include <vector>

#include "core/units.h"

namespace heddle::worker {

// For how long at least one of many intervals was open: the length of their union. They may come in any order, overlap
// and enclose each other; the latest gaps are remembered, so that an interval that comes late counts for the gaps in
// it. Where there were more gaps than that, the time before them is not counted again: never too much, and too little
// only where an operation was under way meanwhile that ended later. Not thread-safe.
class BusyTime {
 public:
  // Nothing before `from` counts.
  explicit BusyTime(TimePoint from) : horizon_(from) { recent_.reserve(kRemembered); }

  // An interval that ends before it begins is empty.
  void add(TimePoint began, TimePoint ended);
  Duration total() const { return total_; }
  // The end of the union.
  TimePoint end() const { return recent_.empty() ? horizon_ : recent_.back().end; }

  static constexpr size_t kRemembered = 256;  // intervals with gaps in between

 private:
  struct Interval {
    TimePoint begin, end;
  };

  void insert(std::vector<Interval>::iterator at, const Interval& interval);

  TimePoint horizon_;
  std::vector<Interval> recent_;  // disjoint, in order, behind the horizon
  Duration total_{};
};

}  // namespace heddle::worker
