#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "client/link/segment_count.h"
#include "protocol/buffer_table.h"
#include "protocol/messages.h"

// Addresses of buffers: which part of a range of addresses belongs to which cudaMalloc. No memory is touched here.
//
// Buffers of 1 MiB and more own a segment; smaller ones share segments of 2 MiB. The more segments a session has, of
// those that heddled lets it have, the larger are those that are shared and the buffers that share them: both sizes
// double with each eighth of the limit, up to 256 MiB and 128 MiB. So a program can have far more buffers than segments
// (100,000 of 1 MiB in 3,400), and one with few of them returns each buffer's memory by itself. Segments get fresh
// addresses for as long as there are any, so that one that was just freed is not declared again at the same place while
// others may still know the old one; only then are freed ranges used again, oldest first, once what touched them is
// committed.
//
// Addresses can be reserved without a segment, get one later, lose it and get another.
//
// Where buffers lie in their segments stands in a table that workers read (protocol/buffer_table.h). A buffer stays
// there until its place may be another's. Small ones that end at a multiple of their alignment have a unit behind them
// that is nobody's: a pointer to a buffer's end is then no pointer to the next one's beginning.
namespace heddle::client {

inline constexpr uint64_t kSegmentBytes = 2ull << 20;    // segments are multiples of it, and aligned to it
inline constexpr uint64_t kOwnSegmentFrom = 1ull << 20;  // smaller buffers share, whatever else there is
inline constexpr uint64_t kBufferAlign = 512;            // what textures may be bound to (core/texture.h)
inline constexpr uint64_t kGapBelow = 512ull << 10;      // for larger buffers a gap would cost too much

struct Segment {
  uint64_t address = 0, bytes = 0;
  uint64_t number = 0;   // as declared to heddled; 0: not declared yet
  uint64_t born = 0;     // sequence of the ring's last record when it was made
  uint32_t buffers = 0;  // live ones
  bool shared = false;
  protocol::SegmentKind kind = protocol::SegmentKind::kDevice;  // other kinds are counted, and nothing is mapped there
  bool textured = false;                                        // a texture or surface object was made of memory in it
  std::map<uint64_t, uint64_t> holes;                           // shared only: free address -> bytes
};

struct Buffer {
  uint64_t address = 0, bytes = 0;
  Segment* segment = nullptr;
  unsigned flags = 0;  // of the caller: what kind of allocation it was
};

// Not thread-safe. Sequences are the ring's: records up to `committed` will never run again.
class Arena {
 public:
  // Segments are counted with those of the session's other arenas, where there is a `count`; it must outlive the arena.
  Arena(uint64_t base, uint64_t bytes, SegmentCount* count = nullptr, protocol::BufferTable table = {})
      : base_(base), end_(base + bytes), count_(count), table_(table), fresh_(base) {}
  Arena(const Arena&) = delete;

  // Small buffers own their segments, too, until there are so many: what is checked by segments is checked by buffers
  // then.
  void share_from(uint64_t segments) { share_from_ = segments; }
  Arena& operator=(const Arena&) = delete;

  struct Place {
    uint64_t address;
    Segment* segment;
    bool new_segment;
  };
  // Space for `bytes` (not 0); nullopt when no addresses are left, or no further segment is allowed. A new shared
  // segment has no more than `most_added` bytes if the buffer fits.
  std::optional<Place> allocate(uint64_t bytes, uint64_t committed, unsigned flags = 0, uint64_t most_added = ~0ull);

  // The same with a segment that no other buffer shares, however small it is.
  std::optional<Place> allocate_alone(uint64_t bytes, uint64_t committed);

  // The segment bytes that allocate() would add now: what counts against the budget.
  uint64_t would_add(uint64_t bytes, uint64_t committed, uint64_t most_added = ~0ull);

  // Ends the buffer at exactly `address`; what lay there stays reserved until `sequence` is committed. Returns its
  // segment, whose `buffers` may now be 0; nullptr: no buffer starts there.
  Segment* release(uint64_t address, uint64_t sequence);

  // A buffer in an empty segment, which nothing touches any more: the contents are what they were.
  Place occupy(Segment* segment, uint64_t bytes);

  // Gives up an empty segment; its addresses may be used again once `sequence` is committed. `segment` is gone then.
  void retire(Segment* segment, uint64_t sequence);

  // Addresses without memory; `bytes` is a multiple of kSegmentBytes. nullopt when none are left.
  std::optional<uint64_t> reserve(uint64_t bytes, uint64_t committed);
  // Whether reserved addresses may have a segment now: they have none, and what touched the last one is committed.
  bool can_back(uint64_t address, uint64_t committed) const;
  // A segment for all of them, and one buffer in it; nullopt where no further segment is allowed. What the device's
  // memory needs is allocate()'s.
  std::optional<Place> back(uint64_t address);
  // Their segment, where there is one, has no buffer any more.
  void unreserve(uint64_t address);
  bool is_reserved(uint64_t address) const { return reserved_.contains(address); }

  // The buffer that holds `address`, or nullptr.
  const Buffer* buffer_at(uint64_t address) const;
  std::optional<uint64_t> first_buffer() const {
    return buffers_.empty() ? std::nullopt : std::optional(buffers_.begin()->first);
  }
  // Whether all of [address, address + bytes) lies in one live segment.
  bool covers(uint64_t address, uint64_t bytes) const;
  bool owns(uint64_t address) const { return address >= base_ && address < end_; }

  template <class Body>
  void for_each_segment(Body&& body) {
    for (auto& [address, segment] : segments_) body(segment.get());
  }
  uint64_t segment_bytes() const { return segment_bytes_; }
  uint64_t buffer_count() const { return buffers_.size(); }

 private:
  struct Retired {
    uint64_t address, bytes, sequence;
  };
  struct Hole {
    uint64_t address, bytes, sequence;
    Segment* segment;
  };
  struct Reserved {
    uint64_t bytes, sequence;  // of the record that gave its last segment back
  };

  uint64_t new_bytes(uint64_t bytes, uint64_t most_added) const;
  bool shares(uint64_t bytes) const;
  Segment* new_segment(uint64_t bytes, uint64_t committed);
  Segment* segment_at(uint64_t address, uint64_t bytes);
  std::optional<uint64_t> take_range(uint64_t bytes, uint64_t committed);
  void reclaim_holes(uint64_t committed);
  std::optional<Place> place_in_shared(uint64_t bytes);
  void share(Segment& segment, uint64_t first_bytes);
  void own(Segment& segment, uint64_t bytes);
  void add_hole(Segment& segment, uint64_t address, uint64_t bytes);
  void remove_hole(Segment& segment, std::map<uint64_t, uint64_t>::iterator hole);
  void forget_holes(Segment& segment);

  const uint64_t base_, end_;
  SegmentCount* const count_;
  protocol::BufferTable table_;
  uint64_t share_from_ = 0;  // of `count_`
  uint64_t fresh_;
  uint64_t segment_bytes_ = 0;
  std::map<uint64_t, std::unique_ptr<Segment>> segments_;  // by address
  std::map<uint64_t, Buffer> buffers_;                     // by address
  std::map<uint64_t, uint64_t> free_ranges_;               // committed, coalesced
  std::map<uint64_t, Reserved> reserved_;                  // by address
  std::deque<Retired> retired_;
  std::deque<Hole> freed_holes_;
  std::set<std::pair<uint64_t, uint64_t>> holes_by_size_;  // (bytes, address) of those in segments with buffers
};

}  // namespace heddle::client
