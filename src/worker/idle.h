#pragma once

#include "protocol/ring.h"

namespace heddle::worker {

// The worker's side of the ring's table of idle memory: takes what the program offers. Anything may stand there, since
// a tenant can write to it. Issuer's thread only.
class Idle {
 public:
  explicit Idle(protocol::RingHeader& header) : table_(header.idle) {}

  bool task_offered(uint64_t serial) const {
    return table_.task.load(std::memory_order_acquire) == protocol::IdleTable::offered_task(serial);
  }
  // Ends the task for its program: from here on it appends nothing to it. False where it is not offered, or not any
  // more.
  bool take_task(uint64_t serial) {
    uint64_t offered = protocol::IdleTable::offered_task(serial);
    return table_.task.compare_exchange_strong(offered, protocol::IdleTable::taken_task(serial));
  }
  // Every offered segment of which `here` says that it is this worker's.
  template <class Here, class Taken>
  void take_segments(Here&& here, Taken&& taken) {
    for (std::atomic<uint64_t>& slot : table_.segments) {
      uint64_t number = slot.load(std::memory_order_acquire);
      if (number == 0 || number & protocol::IdleTable::kSegmentTaken || !here(number)) continue;
      if (slot.compare_exchange_strong(number, number | protocol::IdleTable::kSegmentTaken)) taken(number);
    }
  }
  // What a worker before had taken, and may not have given back.
  bool took_task(uint64_t serial) const {
    return table_.task.load(std::memory_order_acquire) == protocol::IdleTable::taken_task(serial);
  }
  template <class Here, class Taken>
  void taken_segments(Here&& here, Taken&& taken) {
    for (const std::atomic<uint64_t>& slot : table_.segments) {
      const uint64_t number = slot.load(std::memory_order_acquire);
      const uint64_t segment = number & ~protocol::IdleTable::kSegmentTaken;
      if (number != segment && here(segment)) taken(segment);
    }
  }

 private:
  protocol::IdleTable& table_;
};

}  // namespace heddle::worker
