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
  // Of a guarded worker (Guard), whose task leaves MPS when there is no time left: by what a second came to, and not
  // for less than MPS is worth, where programs beside each other take three quarters of their time in time slices.
  static constexpr uint32_t kGuardedPermille = 100;
  static constexpr Duration kGuardedFirst = std::chrono::milliseconds(100);
  // Assumed for each copy, however small: its call, its start on the device, the gap that it leaves between kernels.
  static constexpr Duration kEachCopy = std::chrono::microseconds(5);
  // Assumed until some were measured.
  static constexpr int64_t kAssumedBytesPerNs = 10;
  // Of a part of the undo area that was not used before: a GPU's is pinned then (UndoLog::pieces), another one's is
  // touched for the first time.
  static constexpr int64_t kFirstUsePsPerByte = 300;

  // Copies that an epoch would make.
  struct Save {
    uint64_t bytes = 0, copies = 0;
    uint64_t used = 0;              // of the undo area before them, from its beginning on
    std::optional<Duration> takes;  // by the latest that were measured
  };

  // `permille`: of the time; 0: as much as it takes.
  explicit SaveBudget(uint32_t permille, Duration first = kFirst) : permille_(permille), left_(first) {}
  static SaveBudget guarded(uint32_t permille) {
    return permille == 0 ? SaveBudget(0) : SaveBudget(std::max(permille, kGuardedPermille), kGuardedFirst);
  }

  bool is_bounded() const { return permille_ != 0; }
  // Whether there is time for it.
  bool affords(const Save& save, TimePoint now) {
    if (!is_bounded() || save.copies == 0) return true;
    save_up(now);
    return cost_of(save) <= left_;
  }
  // Copies that had to be made took so long until `now`. Whether there was time for them.
  bool covers(Duration took, TimePoint now) {
    if (!is_bounded()) return true;
    save_up(now);
    left_ -= took;
    return left_ >= Duration::zero();
  }
  void spend(const Save& save) {
    if (!is_bounded() || save.copies == 0) return;
    left_ -= cost_of(save);
    touched_ = std::max(touched_, save.used + save.bytes);
  }

  // What it takes of the stream's time and of the issuer's, each time.
  static Duration time_of(const Save& save) {
    const Duration takes = save.takes.value_or(Duration(static_cast<int64_t>(save.bytes) / kAssumedBytesPerNs));
    return takes + kEachCopy * static_cast<int64_t>(save.copies);
  }
  // And now.
  Duration cost_of(const Save& save) const {
    const uint64_t end = save.used + save.bytes;
    const auto fresh = static_cast<int64_t>(end - std::min(end, std::max(save.used, touched_)));
    return time_of(save) + Duration(fresh * kFirstUsePsPerByte / 1000);
  }

 private:
  void save_up(TimePoint now) {
    if (seen_) left_ = std::min(kMost, left_ + (now - *seen_) / 1000 * permille_);
    seen_ = now;
  }

  const uint32_t permille_;
  Duration left_;
  std::optional<TimePoint> seen_;
  uint64_t touched_ = 0;  // of the undo area, from its beginning on
};

}  // namespace heddle::worker
