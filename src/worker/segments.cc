#include "worker/segments.h"

#include <vector>

namespace heddle::worker {

using protocol::SegmentKind;

Status Segments::map(const protocol::MapSegment& segment, const Fd& memory) {
  if (mapped(segment.number)) return {};  // a restarted heddled says it again
  const Bytes size{segment.bytes};
  Status done;
  if (segment.kind == SegmentKind::kRoom) {
    context_.set_room(room_ += size);
  } else if (segment.kind != SegmentKind::kDriver) {
    const bool host = segment.kind == SegmentKind::kHost;
    done = context_.map(segment.address, size, memory, host);
    if (done && segment.on_host) {
      context_.lies_on_host(segment.address, size);
      on_host_.add(segment.number, segment.address, size);
    }
    if (done) epoch_.mapped(segment.number, segment.address, segment.bytes, host);
  }
  uncertain_ |= !done;
  if (done) segments_.emplace(segment.number, Range{segment.address, size, segment.kind});
  return done;
}

Status Segments::unmap(uint64_t number) {
  const auto found = segments_.find(number);
  if (found == segments_.end())
    return fail(ErrorCode::kNotFound, "segment %lu is not mapped here", static_cast<unsigned long>(number));
  const Range range = found->second;
  segments_.erase(found);
  if (range.kind == SegmentKind::kRoom) {
    context_.set_room(room_ -= range.size);
    return {};
  }
  if (range.kind == SegmentKind::kDriver) return {};
  epoch_.unmapped(number);
  on_host_.remove(range.address);
  Status unmapped = context_.unmap(range.address, range.size);
  uncertain_ |= !unmapped;
  return unmapped;
}

Status Segments::unmap_device_segments() {
  std::vector<uint64_t> numbers;
  for (const auto& [number, range] : segments_) {
    if (range.kind != SegmentKind::kHost) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) HEDDLE_TRY(unmap(number));
  return {};
}

}  // namespace heddle::worker
