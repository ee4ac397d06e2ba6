#pragma once

#include <utility>

#include "policy/percentiles.h"

namespace heddle::policy {

// How long the latest revocations took until their device was free: the last one to two hundred, so that what was slow
// once (a cold driver, a machine that was busy) is forgotten.
class RevocationTimes {
 public:
  void add(Duration took) {
    ++count_;
    latest_.add(took);
    if (latest_.count() == kMany) before_ = std::exchange(latest_, {});
    Percentiles both = before_;
    both.add(latest_);
    longest_ = both.at(0.99);
  }
  // Of all that ever were.
  uint64_t count() const { return count_; }
  // What 99 of 100 take at most; 0 of none.
  Duration longest() const { return longest_; }

 private:
  static constexpr uint64_t kMany = 100;

  Percentiles latest_, before_;
  uint64_t count_ = 0;
  Duration longest_{};
};

}  // namespace heddle::policy
