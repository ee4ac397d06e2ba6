#pragma once

#include <array>
#include <optional>

#include "core/units.h"
#include "worker/kernel_times.h"

namespace heddle::worker {

// Of the work of a program that is alone on its device, what may be handed over without an entry in the books of what
// is in flight (in_flight.h): most of what is known to be so short that the books would cost more than they are worth.
// One in kOneIn goes through them all the same, so that a kind that has become longer is found out. How much is in
// flight is bounded by number instead. Issuer's thread only.
class ShortWork {
 public:
  static constexpr Duration kLongest = std::chrono::microseconds(20);
  static constexpr uint32_t kOneIn = 16;
  static constexpr uint64_t kMostInFlight = 1024;  // records: 20 ms of the device at most

  // Whether one more of that kind may go without.
  bool take(const WorkKind& kind) {
    Entry& entry = of(kind);
    if (entry.kind != kind || entry.left == 0) return false;
    --entry.left;
    return true;
  }
  // One of that kind went through the books, where it is known to take so long.
  void counted(const WorkKind& kind, std::optional<Duration> takes) {
    of(kind) = {kind, takes && *takes <= kLongest ? kOneIn - 1 : 0};
  }

 private:
  struct Entry {
    WorkKind kind;
    uint32_t left = 0;
  };
  Entry& of(const WorkKind& kind) { return entries_[KernelTimes::hash(kind) >> 32 & (entries_.size() - 1)]; }

  std::array<Entry, 64> entries_;
};

}  // namespace heddle::worker
