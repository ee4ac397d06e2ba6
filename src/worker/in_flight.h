#pragma once

// The work that was handed to the device under leases and is not done, and how much more of it there may be: so much
// that the device does not run dry, and no more, so that a lease that is withdrawn is soon back.
//
// While no leases are written nothing is kept here, and the completions thread looks at one word.
//
// Thread safety: the issuer hands over and asks, the completions thread ends; the mutex orders the two. The issuer asks
// to be woken under the same lock under which it has looked, so that no end is missed.

#include <atomic>
#include <deque>
#include <mutex>

#include "worker/kernel_times.h"

namespace heddle::worker {

class InFlight {
 public:
  // So many may always be in flight: the next is there when one ends.
  static constexpr size_t kLeast = 2;

  // Issuer. Whether more of that kind may be handed over while `window` of the device's time may be in flight, by the
  // estimates; zero: without bound. Work of a kind that was never seen fills the window. False: the issuer will be
  // woken.
  bool admits(const WorkKind& kind, Duration window);
  // Before the device gets it; sequences rise.
  void hand_over(uint64_t sequence, const WorkKind& kind, Duration window);
  // The device has not got it, or will not say when it is done.
  void take_back(uint64_t sequence);
  // Whether all of it before `sequence` is done. False: the issuer will be woken.
  bool drained(uint64_t sequence);

  // Completions thread.
  bool any() const { return any_.load(std::memory_order_acquire); }
  // Times come from the device; zero where it never ran. Work that is not here changes nothing.
  void done(uint64_t sequence, Duration took);
  // Whether the issuer is to be woken, since something has ended.
  bool take_awaited();

 private:
  struct Work {
    uint64_t sequence;
    WorkKind kind;
    Duration estimate;
    bool over = false;
  };
  Work* find(uint64_t sequence);
  void end(Work& work);

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::deque<Work> work_;  // by sequence; the first is not over
  size_t running_ = 0;     // of it, those that are not over
  Duration estimated_{};   // of these together
  bool awaited_ = false, ended_ = false;
  KernelTimes times_;
};

}  // namespace heddle::worker
