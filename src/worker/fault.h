#pragma once

#include <atomic>
#include <mutex>

#include "protocol/ring_memory.h"
#include "worker/outbox.h"
#include "worker/refusal.h"

namespace heddle::worker {

// The session's sticky fault: the first one stands, in the ring's header and at heddled. Thread-safe.
class Fault {
 public:
  // A session that had its fault already keeps it with every new worker.
  Fault(protocol::RingMemory& ring, Outbox& outbox);

  void raise(const Refusal& refusal);
  bool raised() const { return raised_.load(std::memory_order_acquire); }

 private:
  protocol::RingMemory& ring_;
  Outbox& outbox_;
  std::mutex mutex_;
  std::atomic<bool> raised_;
};

}  // namespace heddle::worker
