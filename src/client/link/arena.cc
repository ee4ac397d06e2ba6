#include "client/link/arena.h"

#include <algorithm>
#include <iterator>

#include "core/units.h"

namespace heddle::client {
namespace {

static_assert(kBufferAlign == protocol::BufferTable::kUnit && kSegmentBytes == protocol::BufferTable::kStep);

// What a buffer takes of a segment that is shared.
uint64_t place_bytes(uint64_t bytes) {
  return round_up(bytes < kGapBelow ? bytes + 1 : bytes, kBufferAlign);
}

// Adds [address, address + bytes) to a map of free ranges, joined with its neighbours.
void insert_range(std::map<uint64_t, uint64_t>& ranges, uint64_t address, uint64_t bytes) {
  auto next = ranges.lower_bound(address);
  if (next != ranges.end() && address + bytes == next->first) {
    bytes += next->second;
    next = ranges.erase(next);
  }
  if (next != ranges.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += bytes;
      return;
    }
  }
  ranges.emplace_hint(next, address, bytes);
}

// Cuts `bytes` from the first range that has them.
std::optional<uint64_t> cut_range(std::map<uint64_t, uint64_t>& ranges, uint64_t bytes) {
  for (auto range = ranges.begin(); range != ranges.end(); ++range) {
    if (range->second < bytes) continue;
    const auto [address, size] = *range;
    ranges.erase(range);
    if (size > bytes) ranges.emplace(address + bytes, size - bytes);
    return address;
  }
  return std::nullopt;
}

}  // namespace

// Larger ones own their segment.
bool Arena::shares(uint64_t bytes) const {
  if (count_ && count_->count() < share_from_) return false;
  return bytes < kOwnSegmentFrom << (count_ ? count_->doublings() : 0);
}

// Of the segment that a buffer without space in another one gets.
uint64_t Arena::new_bytes(uint64_t bytes, uint64_t most_added) const {
  const uint64_t least = round_up(bytes, kSegmentBytes);
  if (!shares(bytes)) return least;
  const uint64_t usual = kSegmentBytes << (count_ ? count_->doublings() : 0);
  return usual <= most_added ? usual : std::max(least, most_added / kSegmentBytes * kSegmentBytes);
}

std::optional<uint64_t> Arena::take_range(uint64_t bytes, uint64_t committed) {
  if (bytes <= end_ - fresh_) {
    const uint64_t address = fresh_;
    fresh_ += bytes;
    return address;
  }
  while (!retired_.empty() && retired_.front().sequence <= committed) {
    insert_range(free_ranges_, retired_.front().address, retired_.front().bytes);
    retired_.pop_front();
  }
  return cut_range(free_ranges_, bytes);
}

Segment* Arena::new_segment(uint64_t bytes, uint64_t committed) {
  if (count_ && !count_->add()) return nullptr;
  const auto address = take_range(bytes, committed);
  if (!address && count_) count_->remove();
  return address ? segment_at(*address, bytes) : nullptr;
}

Segment* Arena::segment_at(uint64_t address, uint64_t bytes) {
  auto segment = std::make_unique<Segment>();
  segment->address = address;
  segment->bytes = bytes;
  segment_bytes_ += bytes;
  return segments_.emplace(address, std::move(segment)).first->second.get();
}

void Arena::reclaim_holes(uint64_t committed) {
  while (!freed_holes_.empty() && freed_holes_.front().sequence <= committed) {
    const Hole& hole = freed_holes_.front();
    table_.remove(hole.address);
    add_hole(*hole.segment, hole.address, hole.bytes);
    freed_holes_.pop_front();
  }
}

// Joined with its neighbours.
void Arena::add_hole(Segment& segment, uint64_t address, uint64_t bytes) {
  const auto next = segment.holes.find(address + bytes);
  if (next != segment.holes.end()) {
    bytes += next->second;
    remove_hole(segment, next);
  }
  const auto after = segment.holes.lower_bound(address);
  if (after != segment.holes.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == address) {
      address = previous->first;
      bytes += previous->second;
      remove_hole(segment, previous);
    }
  }
  segment.holes.emplace(address, bytes);
  if (segment.buffers > 0) holes_by_size_.emplace(bytes, address);
}

void Arena::remove_hole(Segment& segment, std::map<uint64_t, uint64_t>::iterator hole) {
  holes_by_size_.erase({hole->second, hole->first});
  segment.holes.erase(hole);
}

// Those that are there, and those that will be.
void Arena::forget_holes(Segment& segment) {
  std::erase_if(freed_holes_, [&](const Hole& hole) { return hole.segment == &segment; });
  for (const auto& [address, bytes] : segment.holes) holes_by_size_.erase({bytes, address});
  segment.holes.clear();
}

// In the smallest hole that has space.
std::optional<Arena::Place> Arena::place_in_shared(uint64_t bytes) {
  const auto fitting = holes_by_size_.lower_bound({bytes, 0});
  if (fitting == holes_by_size_.end()) return std::nullopt;
  const auto [size, address] = *fitting;
  Segment& segment = *std::prev(segments_.upper_bound(address))->second;
  remove_hole(segment, segment.holes.find(address));
  if (size > bytes) add_hole(segment, address + bytes, size - bytes);
  return Place{address, &segment, false};
}

std::optional<Arena::Place> Arena::allocate(uint64_t bytes, uint64_t committed, unsigned flags, uint64_t most_added) {
  if (bytes > end_ - base_) return std::nullopt;
  std::optional<Place> place;
  const bool shared = shares(bytes);
  if (shared) {
    reclaim_holes(committed);
    place = place_in_shared(place_bytes(bytes));
  }
  if (!place) {
    Segment* const segment = new_segment(new_bytes(bytes, most_added), committed);
    if (!segment) return std::nullopt;
    place = Place{segment->address, segment, true};
  }
  ++place->segment->buffers;
  if (shared && place->new_segment) share(*place->segment, place_bytes(bytes));
  if (shared) table_.add(place->address, bytes);
  if (!shared) own(*place->segment, bytes);
  buffers_.emplace(place->address, Buffer{place->address, bytes, place->segment, flags});
  return place;
}

std::optional<Arena::Place> Arena::allocate_alone(uint64_t bytes, uint64_t committed) {
  if (bytes > end_ - base_) return std::nullopt;
  Segment* const segment = new_segment(round_up(bytes, kSegmentBytes), committed);
  if (!segment) return std::nullopt;
  segment->buffers = 1;
  own(*segment, bytes);
  buffers_.emplace(segment->address, Buffer{segment->address, bytes, segment, 0});
  return Place{segment->address, segment, true};
}

void Arena::own(Segment& segment, uint64_t bytes) {
  segment.shared = false;
  table_.own(segment.address, bytes);
}

void Arena::share(Segment& segment, uint64_t first_bytes) {
  segment.shared = true;
  table_.share({segment.address, segment.address + segment.bytes});
  if (segment.bytes > first_bytes) add_hole(segment, segment.address + first_bytes, segment.bytes - first_bytes);
}

Arena::Place Arena::occupy(Segment* segment, uint64_t bytes) {
  forget_holes(*segment);
  segment->buffers = 1;
  if (shares(bytes)) {
    share(*segment, place_bytes(bytes));
    table_.add(segment->address, bytes);
  } else {
    own(*segment, bytes);
  }
  buffers_.emplace(segment->address, Buffer{segment->address, bytes, segment, 0});
  return {segment->address, segment, false};
}

uint64_t Arena::would_add(uint64_t bytes, uint64_t committed, uint64_t most_added) {
  if (shares(bytes)) {
    reclaim_holes(committed);
    if (holes_by_size_.lower_bound({place_bytes(bytes), 0}) != holes_by_size_.end()) return 0;
  }
  return new_bytes(bytes, most_added);
}

Segment* Arena::release(uint64_t address, uint64_t sequence) {
  const auto found = buffers_.find(address);
  if (found == buffers_.end()) return nullptr;
  Segment* segment = found->second.segment;
  if (segment->shared) freed_holes_.push_back({address, place_bytes(found->second.bytes), sequence, segment});
  --segment->buffers;
  // Only a segment with buffers takes further ones.
  if (segment->buffers == 0)
    for (const auto& [hole, bytes] : segment->holes) holes_by_size_.erase({bytes, hole});
  buffers_.erase(found);
  return segment;
}

void Arena::retire(Segment* segment, uint64_t sequence) {
  forget_holes(*segment);
  table_.forget(segment->address);
  if (count_) count_->remove();
  if (const auto reserved = reserved_.find(segment->address); reserved != reserved_.end()) {
    reserved->second.sequence = sequence;
  } else {
    retired_.push_back({segment->address, segment->bytes, sequence});
  }
  segment_bytes_ -= segment->bytes;
  segments_.erase(segment->address);
}

std::optional<uint64_t> Arena::reserve(uint64_t bytes, uint64_t committed) {
  if (bytes > end_ - base_) return std::nullopt;
  const auto address = take_range(bytes, committed);
  if (address) reserved_.emplace(*address, Reserved{bytes, 0});
  return address;
}

bool Arena::can_back(uint64_t address, uint64_t committed) const {
  return !segments_.contains(address) && reserved_.at(address).sequence <= committed;
}

std::optional<Arena::Place> Arena::back(uint64_t address) {
  if (count_ && !count_->add()) return std::nullopt;
  const uint64_t bytes = reserved_.at(address).bytes;
  Segment* const segment = segment_at(address, bytes);
  segment->buffers = 1;
  own(*segment, bytes);
  buffers_.emplace(address, Buffer{address, bytes, segment, 0});
  return Place{address, segment, true};
}

void Arena::unreserve(uint64_t address) {
  const auto found = reserved_.find(address);
  const auto [bytes, sequence] = found->second;
  reserved_.erase(found);
  // A segment that is still there retires later, like any other.
  if (!segments_.contains(address)) retired_.push_back({address, bytes, sequence});
}

const Buffer* Arena::buffer_at(uint64_t address) const {
  auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin()) return nullptr;
  const Buffer& buffer = std::prev(after)->second;
  return address - buffer.address < buffer.bytes ? &buffer : nullptr;
}

bool Arena::covers(uint64_t address, uint64_t bytes) const {
  auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return false;
  const Segment& segment = *std::prev(after)->second;
  const uint64_t offset = address - segment.address;
  return segment.buffers > 0 && offset < segment.bytes && bytes <= segment.bytes - offset;
}

}  // namespace heddle::client
