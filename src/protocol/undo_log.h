#pragma once

// Device memory as it was before the open epoch's records wrote to it: what the next worker puts back before it runs
// them again (src/worker/epoch.h). It lies behind the control page and SavedVariables, in the same memfd: it outlives
// the worker, and no program sees it. Pages that nobody writes to cost nothing.
//
// Entries of a record are published before the device is asked for the copies, and the device writes their stamp behind
// the copies and before the record. So they count where that stamp is there: the copies are whole, and the record may
// have begun to write. Without it the record has not begun, and a copy may be half of one. They count, too, only for as
// long as their record lies behind the cut: the log's (Cut::completed) and its stream's own.
//
// Thread safety: one writer at a time; the device writes copies and stamps.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/fd.h"
#include "core/units.h"
#include "protocol/stream_cuts.h"

namespace heddle::protocol {

struct UndoEntry {
  uint64_t sequence = 0;             // of the record
  uint32_t stream = 0;               // the record's, which makes the copy
  uint64_t segment = 0, offset = 0;  // what was copied
  uint64_t bytes = 0;
  uint64_t place = 0;  // where the copy lies in the log's area
};

class UndoLog {
 public:
  static constexpr uint64_t kMostEntries = 4096;

  // `fd` is a control page's memory. One without an area has no room for anything.
  static Result<UndoLog> attach(const Fd& fd);

  // Worker. A new epoch: nothing is in the log.
  void clear();
  // For so many parts, of so many bytes together.
  bool has_room(uint64_t parts, uint64_t bytes) const;
  bool empty() const { return count() == 0; }
  uint64_t bytes() const;  // of all entries
  Bytes capacity() const { return Bytes{area_bytes_}; }
  // Of the area, from its beginning on.
  Bytes used() const { return Bytes{used_}; }
  // What a record will write to of segments; there must be room. Returns which copies are to be made: no copy lies in
  // two pieces of the area.
  struct Part {
    uint64_t segment = 0, offset = 0, bytes = 0;
  };
  struct Copy {
    Part from;
    std::span<std::byte> to;
  };
  std::vector<Copy> add(uint64_t sequence, uint32_t stream, std::span<const Part> parts);
  // What was added last leaves its space, as far as it is committed: is_committed(stream, sequence).
  void forget_last(const std::function<bool(uint32_t, uint64_t)>& is_committed);
  // Of what was added last: eight bytes that are to be copied behind its copies.
  struct Stamp {
    const void* from;
    void* to;
  };
  Stamp stamp() const;
  // The area in the parts that a device may pin singly, each when it is first used: pinning takes the driver 0.3 ms a
  // MiB, and most epochs need little.
  std::vector<std::span<std::byte>> pieces() const;
  // Memory behind the area goes back to the system. Nothing may be in the log, nor be pinned.
  void trim();

  // What the worker before has left of the epoch behind `completed` and the streams' cuts, in the order in which it was
  // added. Entries that do not count are struck out, so that they never will.
  std::vector<UndoEntry> left(uint64_t completed, const StreamCuts& streams = {});
  std::span<std::byte> bytes_of(const UndoEntry& entry) const;

 private:
  struct Entry;
  struct Head;
  Head& head() const;
  Entry& entry(uint64_t index) const;
  uint64_t count() const;
  uint64_t left_in_piece() const;
  std::byte* area() const;

  Mapping mapping_;
  uint64_t area_bytes_ = 0, piece_bytes_ = 0, used_ = 0;
};

}  // namespace heddle::protocol
