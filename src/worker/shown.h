#pragma once

#include "protocol/ring_memory.h"
#include "worker/uncommitted.h"

namespace heddle::worker {

// Words of the ring that tell the program what is done of a stream and of an event. They only rise: a worker before may
// have shown more, and the program may have read an event's time.

inline void show_stream(const protocol::RingMemory& ring, uint32_t stream, uint64_t sequence) {
  std::atomic<uint64_t>& word = ring.streams()[stream].completed;
  if (word.load(std::memory_order_relaxed) < sequence) word.store(sequence, std::memory_order_release);
}

inline void show_event(const protocol::RingMemory& ring, const Uncommitted::Event& reached) {
  protocol::EventSlot& slot = ring.events()[reached.event];
  if (slot.completed.load(std::memory_order_relaxed) >= reached.sequence) return;
  slot.time_ns.store(static_cast<uint64_t>(reached.when.time_since_epoch().count()), std::memory_order_relaxed);
  slot.completed.store(reached.sequence, std::memory_order_release);
}

}  // namespace heddle::worker
