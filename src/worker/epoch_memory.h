#pragma once

// Which bytes of device memory must be saved before a record runs, so that the epoch, the work since the last commit,
// can be run again from its beginning in another worker.
//
// A byte needs its old value again only if that value can matter: some record of the epoch has read it, or the record
// at hand does. Writing what nobody has read is repeatable: the same bytes are written again, whatever lies there by
// then. So a byte is saved before the first write behind a read of it, once an epoch. It never needs to be if the epoch
// had overwritten it before it was read.
//
// Records that may do something else the next time (atomics whose result they use, clocks, what is not known) may write
// other bytes then: all that they may write is saved, but for what the epoch had overwritten. What they leave is
// uncertain, and so is what floats are added to in any order. A kernel that reads what is uncertain may write other
// bytes the next time, too, and what it leaves is uncertain in its turn.
//
// Order: saves are made on the record's own stream, ahead of it. Between streams, records that meet in the same bytes
// are ordered by waits, in which case the ring has them in that order, or by the program having seen a commit, or they
// race and any outcome is right. But where all of a segment counts for one of its buffers, records that meet only in
// bytes that neither touches are not ordered, so that a write must wait for saves of the same bytes on other streams:
// `Precautions::await`.
//
// Module variables end with the worker, and are saved otherwise (variables.h).
//
// Not thread-safe: the issuer's.

#include <map>
#include <set>

#include "worker/byte_ranges.h"
#include "worker/write_set.h"

namespace heddle::worker {

// Bytes of a segment to be saved.
struct Save {
  uint64_t segment = 0;
  ByteRanges::Range bytes;
  bool operator==(const Save&) const = default;
};

struct Precautions {
  std::vector<Save> saves;
  std::vector<device::Tag> await;  // on other streams: the saves behind which these stand must have been made
};

// Bytes of a segment that streams have touched which are committed, before the epoch ends (components.h).
struct CommittedBytes {
  uint64_t segment = 0;
  ByteRanges touched;
  ByteRanges alone;  // the streams that are not committed have not even read these
};

class EpochMemory {
 public:
  // Without a table of buffers all of a segment counts as one.
  explicit EpochMemory(protocol::BufferTable buffers = {}) : regions_(buffers) {}

  // False where it overlaps what is mapped, or its number is known: nothing has changed.
  bool segment_mapped(uint64_t number, uint64_t address, uint64_t bytes, bool host);
  void segment_unmapped(uint64_t number);
  bool variable_placed(uint32_t module, uint32_t index, device::Variable variable);
  const Regions& regions() const { return regions_; }
  // Of a segment that is mapped.
  uint64_t address_of(uint64_t number) const { return segments_.at(number).address; }
  // Of these bytes of it; none where there are none.
  std::optional<uint64_t> find(uint64_t number, ByteRanges::Range bytes) const;

  Precautions before(const RecordEffects& record, uint32_t stream) const;
  // The record goes to the device, behind these saves on its stream: all are made when `saved` is done.
  void handed_over(const RecordEffects& record, const Precautions& taken, uint32_t stream, device::Tag saved);
  // For a worker that runs an epoch again: saved by the one before, who has gone.
  void already_saved(const Save& save);
  // The epoch is over; the next one begins.
  void committed();
  // It is over for these streams, and for what they have touched.
  void committed(const std::vector<uint32_t>& streams, const std::vector<CommittedBytes>& bytes);

 private:
  struct Pending {
    ByteRanges bytes;
    uint32_t stream;
    device::Tag saved;
  };
  // Of an epoch. Bytes are in at most one of `overwritten` (before anybody read them) and `read`.
  struct Segment {
    uint64_t address = 0, bytes = 0;
    bool host = false;
    ByteRanges overwritten, read, saved, uncertain;
    bool all_saved = false;        // every buffer that was there, behind a record that may touch everything
    std::vector<Pending> pending;  // saves that may be under way
  };

  bool reads_uncertain(const RecordEffects& record) const;
  ByteRanges to_save(const Segment& segment, const RecordEffects& record, uint64_t number,
                     ByteRanges::Range written) const;
  ByteRanges buffers_in(const Segment& segment) const;
  void note_reads(Segment& segment, ByteRanges::Range bytes);
  void note_writes(const Touched& part, bool certain);
  void note_accesses(const RecordEffects& record);
  template <class Visit>
  void each_written(const RecordEffects& record, Visit visit) const;

  Regions regions_;
  std::map<uint64_t, Segment> segments_;  // by number
  std::set<std::pair<uint32_t, uint32_t>> uncertain_variables_;
  bool all_uncertain_ = false;
};

}  // namespace heddle::worker
