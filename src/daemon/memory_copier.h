#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "daemon/event_loop.h"
#include "daemon/events.h"

namespace heddle::daemon {

// Copies between pieces of this machine's memory, as software devices' is, on a thread of its own, so that the loop
// never waits for one. What GPUs have their keepers copy (Keepers::copy).
//
// Thread safety: the loop's thread alone calls this. The copying thread shares `jobs_`, `done_` and `current_` with it
// under `mutex_`, has nothing else of heddled's, and rings `bell_` when a copy is over. With heddled it dies at once:
// nothing of a copy goes on behind a successor's back.
class MemoryCopier {
 public:
  MemoryCopier(EventLoop& loop, EventQueue& events) : loop_(loop), events_(events) {}
  ~MemoryCopier();
  MemoryCopier(const MemoryCopier&) = delete;
  MemoryCopier& operator=(const MemoryCopier&) = delete;

  // The first `size` bytes of memory that is zero at `to`, from the same of `from`; pages that were never written are
  // left out. CopyAnswered follows.
  void copy(uint64_t number, const Fd& to, const Fd& from, Bytes size);
  // It is not wanted any more. CopyAnswered may follow, and what is written to `to` meanwhile is of no account.
  void cancel(uint64_t number);

 private:
  struct Job {
    uint64_t number;
    Fd to, from;
    Bytes size;
  };

  Status start();
  void work();
  Status copy(const Job& job);
  Status copy_part(const Job& job, off_t begin, off_t end);
  bool is_wanted(uint64_t number);
  void take_done();

  EventLoop& loop_;
  EventQueue& events_;
  Fd bell_;
  EventLoop::Watch watch_;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::deque<CopyAnswered> done_;
  std::optional<uint64_t> current_;  // being copied; none: nothing is, or it was cancelled
  bool ending_ = false;
};

}  // namespace heddle::daemon
