#pragma once

#include <cstdint>
#include <vector>

#include "core/units.h"

namespace heddle::policy {

// How durations are distributed, within 2 % of each, in memory that does not grow: counters of ranges whose widths grow
// with the values, from a microsecond to a day.
class Percentiles {
 public:
  void add(Duration value);
  void add(const Percentiles& other);
  uint64_t count() const { return count_; }
  // The value that `part` (0 to 1) of all are no larger than; 0 of none. Never above the largest.
  Duration at(double part) const;

 private:
  std::vector<uint64_t> counts_;  // by range, up to the largest that has one
  uint64_t count_ = 0;
  Duration largest_{};
};

}  // namespace heddle::policy
