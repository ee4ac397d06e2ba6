#include "worker/epoch_memory.h"

#include <algorithm>

namespace heddle::worker {
namespace {

// Ranges of a segment that are told apart: beyond that all that is left of it is saved at once.
constexpr size_t kMostRanges = 128;

ByteRanges::Range whole(uint64_t bytes) {
  return {0, bytes};
}
std::pair<uint32_t, uint32_t> variable_of(const Region& region) {
  return {region.module, static_cast<uint32_t>(region.number)};
}

}  // namespace

bool EpochMemory::segment_mapped(uint64_t number, uint64_t address, uint64_t bytes, bool host) {
  if (segments_.contains(number)) return false;
  const auto kind = host ? Region::Kind::kHost : Region::Kind::kDevice;
  if (!regions_.add(address, bytes, {kind, number, 0})) return false;
  Segment& segment = segments_[number];
  segment.address = address;
  segment.bytes = bytes;
  segment.host = host;
  return true;
}

void EpochMemory::segment_unmapped(uint64_t number) {
  const auto found = segments_.find(number);
  if (found == segments_.end()) return;
  regions_.remove(found->second.address);
  segments_.erase(found);
}

bool EpochMemory::variable_placed(uint32_t module, uint32_t index, device::Variable variable) {
  return regions_.add(variable.address, variable.bytes, {Region::Kind::kVariable, index, module});
}

std::optional<uint64_t> EpochMemory::find(uint64_t number, ByteRanges::Range bytes) const {
  const auto found = segments_.find(number);
  if (found == segments_.end() || bytes.begin > bytes.end || bytes.end > found->second.bytes) return std::nullopt;
  return found->second.address + bytes.begin;
}

// Calls visit(number, segment, bytes) for what the record may write of device memory.
template <class Visit>
void EpochMemory::each_written(const RecordEffects& record, Visit visit) const {
  if (record.writes_everything) {
    for (const auto& [number, segment] : segments_) {
      if (!segment.host) visit(number, segment, whole(segment.bytes));
    }
    return;
  }
  for (const Touched& part : record.touched) {
    if (!part.written || part.region.kind != Region::Kind::kDevice) continue;
    const auto found = segments_.find(part.region.number);
    if (found != segments_.end()) visit(found->first, found->second, ByteRanges::Range{part.begin, part.end});
  }
}

bool EpochMemory::reads_uncertain(const RecordEffects& record) const {
  if (all_uncertain_) return true;
  if (record.reads_everything) {
    return !uncertain_variables_.empty() || std::any_of(segments_.begin(), segments_.end(), [](const auto& each) {
      return !each.second.uncertain.empty();
    });
  }
  return std::any_of(record.touched.begin(), record.touched.end(), [&](const Touched& part) {
    if (!part.read) return false;
    if (part.region.kind == Region::Kind::kVariable) return uncertain_variables_.contains(variable_of(part.region));
    const auto found = segments_.find(part.region.number);
    return found != segments_.end() && found->second.uncertain.intersects({part.begin, part.end});
  });
}

// Where there are too many all of the segment counts.
ByteRanges EpochMemory::buffers_in(const Segment& segment) const {
  ByteRanges buffers;
  regions_.each_buffer(segment.address, segment.bytes, [&](uint64_t begin, uint64_t end) {
    if (buffers.count() <= kMostRanges) buffers.add({begin, end});
  });
  return buffers.count() <= kMostRanges ? buffers : ByteRanges(whole(segment.bytes));
}

ByteRanges EpochMemory::to_save(const Segment& segment, const RecordEffects& record, uint64_t number,
                                ByteRanges::Range written) const {
  if (record.writes_everything && segment.all_saved) return {};
  const bool cut_up = segment.saved.count() >= kMostRanges;
  if (cut_up) written = whole(segment.bytes);
  if (segment.saved.covers(written) || segment.overwritten.covers(written)) return {};
  ByteRanges left = ByteRanges(written).without(segment.saved).without(segment.overwritten);
  if (record.writes_everything) left = left.intersection(buffers_in(segment));
  const bool same_bytes = record.same_bytes && !(record.bytes_by_content && reads_uncertain(record));
  if (left.empty() || !same_bytes || cut_up) return left;
  ByteRanges read = segment.read;
  if (record.reads_everything) read.add(whole(segment.bytes));
  for (const Touched& part : record.touched) {
    if (part.read && part.region == Region{Region::Kind::kDevice, number, 0}) read.add({part.begin, part.end});
  }
  return read.empty() ? read : left.intersection(read);
}

Precautions EpochMemory::before(const RecordEffects& record, uint32_t stream) const {
  Precautions needed;
  each_written(record, [&](uint64_t number, const Segment& segment, ByteRanges::Range written) {
    ByteRanges bytes = to_save(segment, record, number, written);
    for (const Save& save : needed.saves) {
      if (save.segment == number) bytes = bytes.without(ByteRanges(save.bytes));
    }
    for (const ByteRanges::Range& range : bytes) needed.saves.push_back({number, range});
    for (const Pending& pending : segment.pending) {
      if (pending.stream != stream && pending.bytes.intersects(written)) needed.await.push_back(pending.saved);
    }
  });
  std::sort(needed.await.begin(), needed.await.end());
  needed.await.erase(std::unique(needed.await.begin(), needed.await.end()), needed.await.end());
  return needed;
}

void EpochMemory::handed_over(const RecordEffects& record, const Precautions& taken, uint32_t stream,
                              device::Tag saved) {
  for (const Save& save : taken.saves) {
    const auto found = segments_.find(save.segment);
    if (found == segments_.end()) continue;
    found->second.saved.add(save.bytes);
    found->second.pending.push_back({ByteRanges(save.bytes), stream, saved});
  }
  if (record.writes_everything && record.reads_everything) {
    for (auto& [number, segment] : segments_) segment.all_saved = true;
  }
  note_accesses(record);
}

void EpochMemory::already_saved(const Save& save) {
  const auto found = segments_.find(save.segment);
  if (found != segments_.end()) found->second.saved.add(save.bytes);
}

void EpochMemory::note_reads(Segment& segment, ByteRanges::Range bytes) {
  if (segment.read.covers(bytes) || segment.overwritten.covers(bytes)) return;
  segment.read.add(ByteRanges(bytes).without(segment.overwritten));
  if (segment.read.count() > kMostRanges) {
    segment.overwritten = {};
    segment.read.add(whole(segment.bytes));
  }
}

void EpochMemory::note_writes(const Touched& part, bool certain) {
  if (part.region.kind == Region::Kind::kVariable) {
    if (!certain) uncertain_variables_.insert(variable_of(part.region));
    return;
  }
  const auto found = segments_.find(part.region.number);
  if (part.region.kind != Region::Kind::kDevice || found == segments_.end()) return;
  Segment& segment = found->second;
  const ByteRanges bytes({part.begin, part.end});
  if (!certain) segment.uncertain.add(bytes);
  if (segment.uncertain.count() > kMostRanges) segment.uncertain.add(whole(segment.bytes));
  if (!part.overwritten) return;
  if (certain) segment.uncertain = segment.uncertain.without(bytes);
  if (segment.overwritten.count() < kMostRanges) segment.overwritten.add(bytes.without(segment.read));
}

// Reads first: what the record itself overwrites it may have read before.
void EpochMemory::note_accesses(const RecordEffects& record) {
  const bool certain = record.same_bytes && record.same_values && !reads_uncertain(record);
  if (record.reads_everything) {
    for (auto& [number, segment] : segments_) note_reads(segment, whole(segment.bytes));
  }
  for (const Touched& part : record.touched) {
    const auto found = segments_.find(part.region.number);
    if (part.read && part.region.kind == Region::Kind::kDevice && found != segments_.end())
      note_reads(found->second, {part.begin, part.end});
  }
  for (const Touched& part : record.touched) {
    if (part.written) note_writes(part, certain);
  }
  all_uncertain_ |= record.writes_everything && !certain;
}

void EpochMemory::committed() {
  for (auto& [number, segment] : segments_) {
    for (ByteRanges* ranges : {&segment.overwritten, &segment.read, &segment.saved, &segment.uncertain})
      ranges->clear();
    segment.pending.clear();
    segment.all_saved = false;
  }
  uncertain_variables_.clear();
  all_uncertain_ = false;
}

// What others read of these bytes they may read again. Nobody else has written or saved any of them.
void EpochMemory::committed(const std::vector<uint32_t>& streams, const std::vector<CommittedBytes>& bytes) {
  for (const CommittedBytes& part : bytes) {
    const auto found = segments_.find(part.segment);
    if (found == segments_.end()) continue;
    Segment& segment = found->second;
    for (ByteRanges* ranges : {&segment.overwritten, &segment.saved, &segment.uncertain})
      *ranges = ranges->without(part.touched);
    segment.read = segment.read.without(part.alone);
    std::erase_if(segment.pending, [&](const Pending& pending) {
      return std::find(streams.begin(), streams.end(), pending.stream) != streams.end();
    });
  }
}

}  // namespace heddle::worker
