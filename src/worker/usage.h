#pragma once

// What the session uses of the device, measured where its records are handed over and done, and published on the ring's
// control page.
//
// What is done comes in batches, one lock and one page for each. A launch costs the issuer two words of its own and
// a look at two that change seldom; only one that comes to an idle ring or device takes the lock.
//
// Thread safety: see at each. The mutex guards the figures; that the device has nothing (`idle_`) is agreed on
// without it: the issuer counts what it hands over and then looks at `idle_`, the other thread sets `idle_` and then
// looks at the count, so that one of them sees the other.

#include <atomic>
#include <mutex>
#include <span>

#include "protocol/control_page.h"
#include "protocol/ring.h"
#include "worker/bursts.h"
#include "worker/busy_time.h"

namespace heddle::worker {

// What the device has done of one record.
struct Done {
  protocol::RecordType type;
  uint64_t bytes = 0;  // of a copy
  TimePoint began{}, ended{};
  uint64_t overrun_ns = 0;
  bool unprotected = false;
};

class UsageMeter {
 public:
  // What stands on the page, for the constructor. Fails where somebody else goes on writing there.
  static Result<protocol::Usage> left_on(const protocol::ControlPage& page);
  // Goes on from what a worker before `left`. What it had in flight is not measured.
  UsageMeter(protocol::ControlPage page, const protocol::Usage& left);

  // Issuer. The ring's next record was seen, and does not wait for the device's lease; it may be taken later.
  void seen(uint64_t sequence) {
    seen_.store(sequence, std::memory_order_relaxed);
    if (!in_burst_.load(std::memory_order_relaxed)) begin_burst();
  }
  // The record goes to the device now; take_back where the device refused it.
  void hand_over(protocol::RecordType type) {
    if (!computes(type)) return;
    handed_over_.store(handed_over_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    if (idle_.load(std::memory_order_seq_cst)) begin_busy();
  }
  void take_back(protocol::RecordType type);

  // Completions thread: before the records' ends are shown to anybody.
  void count(std::span<const Done> batch);

  // Any thread. Of the latest seconds (Bursts).
  Duration longest_burst() {
    std::lock_guard lock(mutex_);
    return bursts_.largest().burst;
  }

  // Either thread. Everything up to `completed` is done: where that is all that was seen, a burst ends.
  void end_burst_at(uint64_t completed) {
    if (in_burst_.load(std::memory_order_relaxed) && completed >= seen_.load(std::memory_order_relaxed)) end_burst();
  }
  // Issuer. Nothing computes, and what is pending waits for the device's lease: a burst ends here, so that none is as
  // long as its lessee has to wait.
  void wait_for_lease() {
    if (in_burst_.load(std::memory_order_relaxed)) end_burst();
  }
  // Issuer. All of the task's records are done. Behind it nothing is published until the ring has another record, by
  // the completions thread either, which may have been about to end the burst.
  void end_task() { end_burst(); }

 private:
  static bool computes(protocol::RecordType type) {
    return type == protocol::RecordType::kLaunch || type == protocol::RecordType::kFill ||
           type == protocol::RecordType::kLibraryCall;
  }
  void begin_burst();
  void end_burst();
  void begin_busy();
  void add(const Done& done);
  void look_at_flight();
  void publish();

  // The issuer alone writes these; those in the next line both threads, under the mutex.
  alignas(64) std::atomic<uint64_t> seen_{0}, handed_over_{0};
  alignas(64) std::atomic<bool> idle_{true}, in_burst_{false};

  alignas(64) std::mutex mutex_;
  protocol::ControlPage page_;
  protocol::Usage usage_;              // as published last, but for what follows
  const protocol::Usage forerunners_;  // totals of the workers before
  BusyTime busy_, copying_, unprotected_;
  Bursts bursts_;
  uint64_t done_ = 0;       // of what was handed over
  TimePoint busy_since_{};  // valid while something is in flight
};

}  // namespace heddle::worker
