#include "client/link/arena.h"

#include <iterator>

#include "core/units.h"

namespace heddle::client {
namespace {

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
  const auto address = take_range(bytes, committed);
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
    insert_range(hole.segment->holes, hole.address, hole.bytes);
    freed_holes_.pop_front();
  }
}

std::optional<Arena::Place> Arena::place_in_shared(uint64_t bytes) {
  for (const auto& [address, segment] : segments_) {
    if (!segment->shared || segment->buffers == 0) continue;
    if (const auto found = cut_range(segment->holes, bytes)) return Place{*found, segment.get(), false};
  }
  return std::nullopt;
}

std::optional<Arena::Place> Arena::allocate(uint64_t bytes, uint64_t committed, unsigned flags) {
  if (bytes > end_ - base_) return std::nullopt;
  std::optional<Place> place;
  if (bytes < kOwnSegmentFrom) {
    const uint64_t rounded = round_up(bytes, kBufferAlign);
    reclaim_holes(committed);
    place = place_in_shared(rounded);
    if (!place) {
      Segment* segment = new_segment(kSegmentBytes, committed);
      if (!segment) return std::nullopt;
      share(*segment, rounded);
      place = Place{segment->address, segment, true};
    }
  } else {
    Segment* segment = new_segment(round_up(bytes, kSegmentBytes), committed);
    if (!segment) return std::nullopt;
    place = Place{segment->address, segment, true};
  }
  ++place->segment->buffers;
  buffers_.emplace(place->address, Buffer{place->address, bytes, place->segment, flags});
  return place;
}

void Arena::share(Segment& segment, uint64_t first_bytes) {
  segment.shared = true;
  segment.holes = {{segment.address + first_bytes, segment.bytes - first_bytes}};
}

Arena::Place Arena::occupy(Segment* segment, uint64_t bytes) {
  std::erase_if(freed_holes_, [&](const Hole& hole) { return hole.segment == segment; });
  segment->shared = false;
  if (bytes < kOwnSegmentFrom) share(*segment, round_up(bytes, kBufferAlign));
  segment->buffers = 1;
  buffers_.emplace(segment->address, Buffer{segment->address, bytes, segment, 0});
  return {segment->address, segment, false};
}

uint64_t Arena::would_add(uint64_t bytes, uint64_t committed) {
  if (bytes >= kOwnSegmentFrom) return round_up(bytes, kSegmentBytes);
  reclaim_holes(committed);
  const uint64_t rounded = round_up(bytes, kBufferAlign);
  for (const auto& [address, segment] : segments_) {
    if (!segment->shared || segment->buffers == 0) continue;
    for (const auto& [hole, size] : segment->holes) {
      if (size >= rounded) return 0;
    }
  }
  return kSegmentBytes;
}

Segment* Arena::release(uint64_t address, uint64_t sequence) {
  const auto found = buffers_.find(address);
  if (found == buffers_.end()) return nullptr;
  Segment* segment = found->second.segment;
  if (segment->shared)
    freed_holes_.push_back({address, round_up(found->second.bytes, kBufferAlign), sequence, segment});
  --segment->buffers;
  buffers_.erase(found);
  return segment;
}

void Arena::retire(Segment* segment, uint64_t sequence) {
  std::erase_if(freed_holes_, [&](const Hole& hole) { return hole.segment == segment; });
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

Arena::Place Arena::back(uint64_t address) {
  const uint64_t bytes = reserved_.at(address).bytes;
  Segment* const segment = segment_at(address, bytes);
  segment->buffers = 1;
  buffers_.emplace(address, Buffer{address, bytes, segment, 0});
  return {address, segment, true};
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
