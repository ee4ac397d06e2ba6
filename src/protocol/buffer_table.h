#pragma once

// Where in segments of device memory the program's buffers lie. A kernel that is given an address in one buffer writes
// to no other, so a worker that saves memory before a kernel runs (src/worker/epoch.h) saves that buffer and not the
// segment.
//
// The client writes the table and workers read it, without a lock. It outlives the worker, as the ring does. It covers
// the first kSpan addresses of the session's window:
//   - a word for each 2 MiB, which counts where a segment begins there: 0: nothing is known of the segment, and all of
//     it counts as one buffer; 1: buffers share it; else twice the bytes of its only buffer.
//   - of segments that are shared, a bit for each unit of 512 bytes in which a buffer begins, and a bit for each in
//   which
//     one ends. No two buffers have bytes in the same unit.
// Memory that nobody has touched costs nothing, and a cudaMalloc is two bits.
//
// Why no reader finds half of a change: a reader looks for buffers of a record that is not committed. Their bits were
// set before the record was appended, and are cleared once all records before their free are committed. What changes
// meanwhile is of other buffers, and a buffer ends at the first end behind its beginning, whatever lies behind that. A
// segment that goes away becomes unknown by one store.
//
// Readers trust nothing: whatever stands here, what they are told lies within the segment that they ask for, so that a
// client which lies harms its own memory alone.

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/units.h"

namespace heddle::protocol {

class BufferTable {
 public:
  static constexpr uint64_t kUnit = 512;
  static constexpr uint64_t kStep = 2 * kMiB;          // segments begin and end at multiples of it
  static constexpr uint64_t kSpan = 2ull << 40;        // addresses that the table covers
  static constexpr uint64_t kMostShared = 256 * kMiB;  // a segment that is larger is not searched for buffers
  static constexpr uint64_t kSteps = kSpan / kStep, kUnits = kSpan / kUnit;
  static constexpr uint64_t kWordBits = 64;
  static constexpr uint64_t kBytes = (kSteps + 2 * (kUnits / kWordBits)) * sizeof(uint64_t);

  // Addresses [begin, end).
  struct Extent {
    uint64_t begin = 0, end = 0;
    bool operator==(const Extent&) const = default;
  };

  // Covers nothing.
  BufferTable() = default;
  // A view of kBytes of memory, which was zero at first. `base`: of the session's window.
  BufferTable(std::span<char> memory, uint64_t base);

  // Client, one thread at a time. The segment has one buffer of `bytes`, at its beginning.
  void own(uint64_t segment, uint64_t bytes);
  // Buffers share the segment. There are none yet, and no record that is not committed touches it.
  void share(Extent segment);
  // From now on all of the segment counts.
  void forget(uint64_t segment);
  // A buffer of a shared segment: before any record names it; once all records before its free are committed.
  void add(uint64_t address, uint64_t bytes);
  void remove(uint64_t address);

  // Worker. Of the segment's buffers the last one that begins at or before `address`, and the first that begins behind
  // it. Extents end at multiples of kUnit.
  std::optional<Extent> at_or_before(Extent segment, uint64_t address) const;
  std::optional<Extent> behind(Extent segment, uint64_t address) const;

 private:
  using Word = std::atomic<uint64_t>;

  bool covers(Extent segment) const;
  bool is_shared(Extent segment) const;
  Extent only_one(Extent segment) const;
  Extent from(Extent segment, uint64_t unit) const;
  uint64_t unit_of(uint64_t address) const { return (address - base_) / kUnit; }
  uint64_t address_of(uint64_t unit) const { return base_ + unit * kUnit; }

  Word* words_ = nullptr;   // by steps
  Word* begins_ = nullptr;  // by units
  Word* ends_ = nullptr;
  uint64_t base_ = 0;
};

}  // namespace heddle::protocol
