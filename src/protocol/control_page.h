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
// The other way, heddled writes the lease: whether the worker may hand work to the device. Generation and state are one
// word, so that a look at it costs the worker one load; the terms of generation g stand in slot g & 1 before the word
// names g, and never change while it does. A reader that finds another generation in the word afterwards reads anew.
//
// Thread safety: usage has one writer at a time (the worker sees to that), the lease has heddled alone; any number of
// readers.

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

  // A burst begins with the first record that comes to an idle ring and ends when nothing is pending or in flight, or
  // what is pending waits for the device's lease; one without work for the device does not count. The largest are those
  // of the latest 3 to 6 seconds with bursts.
  uint64_t bursts = 0;
  uint64_t longest_burst_ns = 0;
  uint64_t merged_burst_ns = 0;  // the longest, where bursts with gaps of at most 2 ms count as one
  uint64_t longest_gap_ns = 0;   // from a burst's end to the next one's beginning

  // Since when the device has a kernel, library call or fill without busy_ns counting the time; 0: it has none. Without
  // a meaning once the worker is gone.
  uint64_t busy_since_ns = 0;
};

// Whether the worker may hand work for the device over. While the policy is `open`, no lease is ever written.
struct Lease {
  enum class State : uint64_t {
    kOpen = 0,   // nobody asks for leases: the worker may, always
    kHeld,       // it may, until the time and within the window
    kWithdrawn,  // it may not: what is in flight ends, and then the lease is heddled's again
  };
  State state = State::kOpen;
  bool wanted = false;      // others wait for the device: the worker says when it has nothing more to do
  uint64_t generation = 0;  // counts how often the ring was lent a device

  // Terms of the generation. Times are nanoseconds of CLOCK_MONOTONIC.
  uint64_t until_ns = UINT64_MAX;  // from then on the worker gives the lease back by itself
  uint64_t window_ns = 0;          // of device time that may be in flight; 0: without bound
  bool whole_bursts = false;       // a burst that would not end before `until_ns` is not begun

  // State, `wanted` and generation, as they stand on the page.
  static constexpr uint64_t kStateMask = 3, kWantedBit = 4;
  static constexpr int kGenerationShift = 3;
  constexpr uint64_t word() const {
    return generation << kGenerationShift | (wanted ? kWantedBit : 0) | static_cast<uint64_t>(state);
  }
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

  // heddled. The terms of a generation that stands there already must be the same.
  void write_lease(const Lease& lease);
  // Worker, and heddled after a restart. False where heddled wrote too often meanwhile; `lease` is as it was then.
  bool read_lease(Lease& lease) const;
  // Worker: what may have changed since read_lease(), as Lease::word() says it.
  uint64_t lease_word() const { return layout().lease.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kWords = sizeof(Usage) / sizeof(uint64_t);
  struct Slot {
    alignas(64) std::atomic<uint64_t> words[kWords];
  };
  struct Terms {
    std::atomic<uint64_t> until_ns, window_ns, whole_bursts;
  };
  struct Layout {
    uint32_t magic, version;                      // written by create() alone
    alignas(64) std::atomic<uint64_t> published;  // how many states were; the latest stands in slot `published & 1`
    Slot slots[2];
    alignas(64) std::atomic<uint64_t> lease;  // Lease::word()
    Terms terms[2];                           // those of generation g in slot g & 1
  };

  Layout& layout() const { return *static_cast<Layout*>(mapping_.data()); }

  Mapping mapping_;
};

}  // namespace heddle::protocol
