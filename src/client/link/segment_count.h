#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle::client {

// How many segments a session has, over all its arenas and with its pinned memory. Any thread.
class SegmentCount {
 public:
  // `most`: limits.segments_per_session of heddled; 0: no limit. Before anything is counted.
  void limit(uint64_t most) { most_ = most; }
  uint64_t most() const { return most_; }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  bool is_full() const { return most_ != 0 && count() >= most_; }
  // False, and nothing is counted, where it is full.
  bool add() {
    if (count_.fetch_add(1, std::memory_order_relaxed) < most_ || most_ == 0) return true;
    remove();
    return false;
  }
  void remove() { count_.fetch_sub(1, std::memory_order_relaxed); }
  // How often the sizes of shared segments have doubled (arena.h).
  uint32_t doublings() const {
    constexpr uint64_t kSteps = 8, kMost = 7;
    return most_ == 0 ? 0 : static_cast<uint32_t>(std::min(count() * kSteps / most_, kMost));
  }

 private:
  uint64_t most_ = 0;
  std::atomic<uint64_t> count_{0};
};

}  // namespace heddle::client
