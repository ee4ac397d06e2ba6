#pragma once

#include <vector>

#include "client/link/arena.h"
#include "protocol/ring.h"

// Segments that the program has freed and that stay mapped in its worker, charged to the program: cudaMalloc of their
// size takes one back, and the worker gives back what heddled wants for others (protocol::IdleTable).
namespace heddle::client {

// Not thread-safe: under its device's lock. The worker takes segments away at any moment.
class IdleMemory {
 public:
  explicit IdleMemory(protocol::RingHeader& header) : header_(header) {}

  // Whether nobody waits for memory or a device. To be asked once more behind each offer.
  bool allowed() const { return header_.idle_allowed.load(std::memory_order_seq_cst) != 0; }
  bool empty() const { return entries_.empty(); }
  // Of those that were not seen to be gone.
  uint64_t bytes() const { return bytes_; }

  // Nothing that was called so far touches it. False where the table is full.
  bool offer(Segment* segment);
  // The newest of so many bytes; nullptr where there is none.
  Segment* take_fitting(uint64_t bytes);
  Segment* take_oldest();
  // False where the worker was first.
  bool take(const Segment* segment);
  // What the worker has taken since: gone, or about to be.
  std::vector<Segment*> lost();

 private:
  struct Entry {
    Segment* segment;
    std::atomic<uint64_t>* slot;
  };
  bool take_at(size_t index);
  void erase(size_t index);

  protocol::RingHeader& header_;
  std::vector<Entry> entries_;  // oldest first
  uint64_t bytes_ = 0;
};

}  // namespace heddle::client
