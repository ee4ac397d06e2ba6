#pragma once

#include <atomic>
#include <mutex>

#include "protocol/ring_memory.h"
#include "worker/commit.h"
#include "worker/printer.h"
#include "worker/refusal.h"

namespace heddle::worker {

// The session's sticky fault: the first one stands, in the ring's header and at heddled. What was written for the
// program before (a failed assertion, say) is in the ring when the fault is. Thread-safe.
class Fault {
 public:
  // A session that had its fault already keeps it with every new worker. `shared`: what the device reports may be
  // another client's fault.
  Fault(protocol::RingMemory& ring, Commit& commit, Printer& printer, bool shared);

  void raise(Refusal refusal);
  // The device was lost while nothing of the session was being computed: where faults are shared, another's doing.
  void raise_of_device(const Refusal& refusal);
  bool raised() const { return raised_.load(std::memory_order_acquire); }

 private:
  void publish(const Refusal& refusal);

  protocol::RingMemory& ring_;
  Commit& commit_;
  Printer& printer_;
  const bool shared_;
  std::mutex mutex_;
  std::atomic<bool> raised_;
};

}  // namespace heddle::worker
