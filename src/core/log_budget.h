#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/units.h"

namespace heddle {

// How many lines of one kind a log takes: so many at once, then so many a second. What causes lines may be a tenant,
// who must not fill a disk with them. Lines are of one kind when their first 40 characters are the same but for digits.
class LogBudget {
 public:
  struct Rates {
    double burst = 200, per_second = 20;
  };
  explicit LogBudget(Rates rates) : rates_(rates) {}

  struct Verdict {
    bool write = false;
    // Lines of this kind since the last one that was written, or since the kind was forgotten for want of room.
    uint64_t left_out = 0;
  };
  Verdict ask(std::string_view line, TimePoint now);

  // What lines of one kind have in common.
  static std::string kind_of(std::string_view line);
  size_t kinds() const { return kinds_.size(); }

 private:
  struct Kind {
    double left = 0;
    TimePoint since{};
    uint64_t left_out = 0;
  };
  double left(const Kind& kind, TimePoint now) const;
  void forget_rested(TimePoint now);

  Rates rates_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

}  // namespace heddle
