#pragma once

#include <algorithm>
#include <optional>

#include "core/clock.h"

namespace heddle::worker {

// How much of a program's time may go into the copies that protect its work, where that is bounded (durability level
// `auto`, docs/revocation.md): a share of the time that passes, saved up while it is not used.
class SaveBudget {
 public:
  // A program's first copies come at once, and what was saved up in an hour is not spent in one go.
  static constexpr Duration kFirst = std::chrono::milliseconds(5);
  static constexpr Duration kMost = std::chrono::milliseconds(200);

  // `permille`: of the time; 0: as much as it takes.
  explicit SaveBudget(uint32_t permille) : permille_(permille) {}

  bool is_bounded() const { return permille_ != 0; }
  // Whether copies that take so long may be made.
  bool affords(Duration copies, TimePoint now) {
    if (!is_bounded()) return true;
    if (seen_) left_ = std::min(kMost, left_ + (now - *seen_) / 1000 * permille_);
    seen_ = now;
    return copies <= left_;
  }
  void spend(Duration copies) {
    if (is_bounded()) left_ -= copies;
  }

 private:
  const uint32_t permille_;
  Duration left_ = kFirst;
  std::optional<TimePoint> seen_;
};

}  // namespace heddle::worker
