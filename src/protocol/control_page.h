#pragma once

// Memory that heddled and the workers of one ring share and no program sees: what a worker measured must not lie where
// a tenant can write.
//
// One memfd of a page for each ring, made and sealed by heddled, kept with the vault and given to each worker that is
// bound to the ring. The totals count since the ring was made: a worker goes on from what its forerunner left.
//
// The writer fills one of two slots and then publishes its number; the reader copies the slot that was published last
// and looks whether it still is. So a worker that dies while it writes leaves its last whole state, which is what
// heddled and the next worker read; there is no lock that a death could leave taken.
//
// Thread safety: one writer at a time (the worker sees to that), any number of readers.

#include <atomic>
#include <cstdint>

#include "core/fd.h"

namespace heddle::protocol {

// What the workers of a ring measured. Times are nanoseconds of CLOCK_MONOTONIC, as the device tells when it began and
// ended an operation.
struct Usage {
  // Totals of what is done.
  uint64_t launches = 0, kernel_ns = 0;  // sum of each launch's time on the device, first block to last
  uint64_t copies = 0, copied_bytes = 0;
  uint64_t copy_ns = 0;     // in which at least one copy was under way
  uint64_t busy_ns = 0;     // in which at least one kernel, library call or fill was on the device
  uint64_t overrun_ns = 0;  // by how much the host was late with launches and copies against the model

  // A burst begins with the first record that comes to an idle ring and ends when nothing is pending or in flight; one
  // without work for the device does not count. The largest are those of the latest 3 to 6 seconds with bursts.
  uint64_t bursts = 0;
  uint64_t longest_burst_ns = 0;
  uint64_t merged_burst_ns = 0;  // the longest, where bursts with gaps of at most 2 ms count as one
  uint64_t longest_gap_ns = 0;   // from a burst's end to the next one's beginning

  // Since when the device has a kernel, library call or fill without busy_ns counting the time; 0: it has none. Without
  // a meaning once the worker is gone.
  uint64_t busy_since_ns = 0;
};

class ControlPage {
 public:
  // heddled: a page on which nothing was measured.
  static Result<std::pair<Fd, ControlPage>> create();
  // Worker, and heddled again. `fd` must be sealed, and a page that create() made.
  static Result<ControlPage> attach(const Fd& fd);

  // Worker.
  void publish(const Usage& usage);
  // False where the worker published too often for the reader to get a whole state; `usage` is as it was then.
  bool read(Usage& usage) const;

 private:
  static constexpr size_t kWords = sizeof(Usage) / sizeof(uint64_t);
  struct Slot {
    alignas(64) std::atomic<uint64_t> words[kWords];
  };
  struct Layout {
    uint32_t magic, version;                      // written by create() alone
    alignas(64) std::atomic<uint64_t> published;  // how many states were; the latest stands in slot `published & 1`
    Slot slots[2];
  };

  Layout& layout() const { return *static_cast<Layout*>(mapping_.data()); }

  Mapping mapping_;
};

}  // namespace heddle::protocol
