#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "protocol/ring_memory.h"

namespace heddle::protocol {

// A record, copied out of the ring: nobody can change it any more.
struct Record {
  RecordHeader header;
  std::vector<std::byte> bytes;  // the whole record, header included
  uint64_t end = 0;              // record position behind it

  template <class T>
  T as() const {
    T record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
  }
  template <class T>
  std::span<const std::byte> trailing() const {
    return std::span(bytes).subspan(sizeof(T));
  }
};

// The worker's end: takes records in order and publishes the watermarks. Believes nothing that it reads: a length,
// sequence, type or table index that makes no sense is a kProtocol error, and the session is over.
// Thread-safety: next() on one thread; the publishing functions on one thread (may be another).
class RingReader {
 public:
  // Starts at the first record that is not committed, as the ring says.
  static Result<RingReader> attach(RingMemory& memory);
  // Starts at `position`, behind the record `sequence`.
  static Result<RingReader> attach(RingMemory& memory, uint64_t position, uint64_t sequence);

  // The next record, or false when there is none yet. Reuses `record`'s memory.
  Result<bool> next(Record& record);

 private:
  RingReader(RingMemory& memory, uint64_t position, uint64_t sequence)
      : memory_(&memory), position_(position), sequence_(sequence) {}
  Status check(const RecordHeader& header, uint64_t available) const;

  RingMemory* memory_;
  uint64_t position_;
  uint64_t sequence_;  // of the record taken last
};

// Whether [position, position + bytes) lies in the bulk area without wrapping.
bool in_bulk(const RingMemory& memory, uint64_t position, uint64_t bytes);

}  // namespace heddle::protocol
