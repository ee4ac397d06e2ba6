#pragma once

#include <algorithm>

#include "core/units.h"

namespace heddle::policy {

// The largest of the values of the last three to six seconds in which there were any.
class RecentPeak {
 public:
  void add(Duration value, TimePoint now) {
    if (now - began_ >= kWindow) {
      before_ = now - began_ < 2 * kWindow ? peak_ : Duration{};
      peak_ = {};
      began_ = now;
    }
    peak_ = std::max(peak_, value);
  }
  Duration value() const { return std::max(peak_, before_); }

 private:
  static constexpr Duration kWindow = std::chrono::seconds(3);

  Duration peak_{}, before_{};
  TimePoint began_{};
};

}  // namespace heddle::policy
