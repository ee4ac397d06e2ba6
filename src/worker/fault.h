#pragma once

#include <atomic>
#include <mutex>

#include "protocol/ring_memory.h"
#include "worker/commit.h"
#include "worker/printer.h"
#include "worker/refusal.h"

namespace heddle::worker {

// The session's sticky fault: the first one stands, in the ring's header and at heddled. What was written for the
// program before (a failed assertion, say) is in the ring when the fault is.
//
//   none -> raised        none -> held back -> raised
//
// Where the device's clients share their faults (MPS), one that the device reports may be another program's: it is held
// back, only heddled hears of it, and from then on nothing of the session is done or shown. heddled ends the worker, or
// has it raise the fault (DeviceFault). Thread-safe.
class Fault {
 public:
  // A session that had its fault already keeps it with every new worker. `shared`: the device's clients share theirs.
  Fault(protocol::RingMemory& ring, Commit& commit, Printer& printer, bool shared);

  // One that is held back is raised in place of any that comes later.
  void raise(const Refusal& refusal);
  bool raised() const { return state_.load(std::memory_order_acquire) == State::kRaised; }
  bool held_back() const { return state_.load(std::memory_order_acquire) == State::kHeldBack; }

 private:
  enum class State { kNone, kHeldBack, kRaised };
  void hold_back(const Refusal& refusal);

  protocol::RingMemory& ring_;
  Commit& commit_;
  Printer& printer_;
  const bool shared_;
  std::mutex mutex_;
  Refusal held_back_;
  std::atomic<State> state_;
};

}  // namespace heddle::worker
