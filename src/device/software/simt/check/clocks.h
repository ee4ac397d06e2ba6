#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/software/simt/op.h"

namespace heddle::software {

// What happened before what, among the threads of one block: vector clocks. A thread's time counts the occasions at
// which it told others what it had done; a step of it at time t happened before another thread's next step if that
// thread has heard of time t.
//
// Most of what threads hear they hear together: at a barrier of the block, at a .sync instruction of a warp. That is
// kept once for all of them, so that such a meeting costs a step for each thread and not one for each pair.
class Clocks {
 public:
  using Clock = std::vector<uint32_t>;  // of a thread: up to which time of each thread of the block it has heard

  explicit Clocks(uint32_t threads);
  void reset();

  uint32_t now(uint32_t thread) const { return now_[thread]; }
  bool has_heard(uint32_t thread, uint32_t other, uint32_t time) const {
    if (thread == other || time <= by_all_[other]) return true;
    const Clock& own = by_thread_[thread];
    return time <= by_warp_[row(thread) + other] || (!own.empty() && time <= own[other]);
  }

  // Every thread of the block hears of everything.
  void meet_all();
  // Lanes of a warp hear of each other; `whole`: they are all that live.
  void meet(uint32_t warp, uint32_t lanes, bool whole);
  // What a thread has heard of and done is added to a clock; what is in a clock is heard of by a thread.
  void release(uint32_t thread, Clock& into);
  void acquire(uint32_t thread, const Clock& from);

 private:
  size_t row(uint32_t thread) const { return size_t{thread / kLanes} * threads_; }

  uint32_t threads_;
  Clock now_, by_all_;
  Clock by_warp_;                 // a row of all threads for each warp
  std::vector<Clock> by_thread_;  // empty: nothing beyond the others
};

}  // namespace heddle::software
