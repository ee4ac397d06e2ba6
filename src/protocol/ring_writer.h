#pragma once

#include <cstring>

#include "protocol/ring_memory.h"

namespace heddle::protocol {

// The client's end: appends records. Not thread-safe; the client holds its lock.
class RingWriter {
 public:
  explicit RingWriter(RingMemory& memory) : memory_(memory) {}

  // Space for a record of `bytes` (rounded up to kRecordAlign); nullptr while the ring is too full for it. The memory
  // is inside the ring: fill it, then publish. Its header is zeroed but for type, bytes and the sequence it will have.
  template <class Record>
  Record* reserve(RecordType type, uint32_t stream, size_t trailing_bytes = 0) {
    auto* header = reserve_bytes(type, stream, sizeof(Record) + trailing_bytes);
    return reinterpret_cast<Record*>(header);
  }
  // Makes the reserved record visible and wakes the worker if it sleeps. Returns its sequence.
  uint64_t publish();

  uint64_t last_sequence() const { return sequence_; }

 private:
  RecordHeader* reserve_bytes(RecordType type, uint32_t stream, size_t bytes);
  RecordHeader* start_record(RecordType type, uint32_t stream, uint32_t bytes);
  bool has_space(uint64_t bytes);

  RingMemory& memory_;
  uint64_t tail_ = 0, head_ = 0;  // record positions: end of the published, start of the uncommitted (cached)
  uint64_t sequence_ = 0;
  uint32_t reserved_bytes_ = 0;
};

}  // namespace heddle::protocol
