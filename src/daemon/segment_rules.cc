#include "daemon/segment_rules.h"

#include <algorithm>

namespace heddle::daemon {
namespace {

using protocol::DeclareSegment;
using protocol::SegmentKind;

constexpr uint64_t kStep = 2 * kMiB;
// Pieces of memory that heddled has noted, for each that the program may have.
constexpr uint64_t kSegmentsOnTheirWayBack = 2;

unsigned long number(uint64_t value) {
  return static_cast<unsigned long>(value);
}

Status check_range(const Session& session, const DeclareSegment& declared) {
  const protocol::Window& window = *session.window;
  if (declared.bytes == 0 || declared.bytes % kStep != 0 || declared.address % kStep != 0)
    return fail(ErrorCode::kProtocol, "segment %lu at %#lx with %lu bytes: both must be multiples of 2 MiB",
                number(declared.number), number(declared.address), number(declared.bytes));
  const bool host = declared.kind == SegmentKind::kHost;
  const uint64_t part = window.base + (host ? window.device_bytes : 0);
  const uint64_t part_bytes = host ? window.host_bytes : window.device_bytes;
  if (declared.address < part || declared.bytes > part_bytes || declared.address - part > part_bytes - declared.bytes)
    return fail(ErrorCode::kProtocol, "segment %lu at %#lx with %lu bytes is outside the session's window",
                number(declared.number), number(declared.address), number(declared.bytes));
  return {};
}

const Segment* overlapped(const Session& session, const DeclareSegment& declared) {
  auto behind = session.by_address.lower_bound(declared.address);
  if (behind != session.by_address.end() && behind->first < declared.address + declared.bytes)
    return &session.segments.at(behind->second);
  if (behind == session.by_address.begin()) return nullptr;
  const Segment& before = session.segments.at(std::prev(behind)->second);
  return before.address + before.bytes.value > declared.address ? &before : nullptr;
}

// Only a segment of a virtual device that is served can be on its way back.
bool may_be_on_its_way_back(const Session& session, const Segment& segment, const Executor& executor) {
  return segment.kind != SegmentKind::kHost && segment.state == Segment::State::kHeld &&
         executor.serving(session.devices[segment.virtual_device]);
}

bool is_same(const Segment& segment, const DeclareSegment& declared) {
  return segment.address == declared.address && segment.bytes.value == declared.bytes &&
         segment.kind == declared.kind && segment.virtual_device == declared.virtual_device;
}

Result<SegmentVerdict> check_old_number(const Session& session, const DeclareSegment& declared) {
  const auto found = session.segments.find(declared.number);
  if (session.resumed && (found == session.segments.end() || is_same(found->second, declared)))
    return SegmentVerdict::kKnown;
  return fail(ErrorCode::kProtocol, "segment number %lu is not new: the highest was %lu", number(declared.number),
              number(session.highest_segment));
}

// From the first to behind the last byte; nullopt where rows or slices overlap, or it overflows.
std::optional<uint64_t> extent(const protocol::CopyAcross& copy, const protocol::PeerEnd& end) {
  uint64_t rows = copy.width, total;
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return std::nullopt;
  if (copy.height > 1 && (end.pitch < copy.width || __builtin_mul_overflow(copy.height - 1, end.pitch, &rows) ||
                          __builtin_add_overflow(rows, copy.width, &rows)))
    return std::nullopt;
  if (copy.depth == 1) return rows;
  if (end.slice < rows || __builtin_mul_overflow(copy.depth - 1, end.slice, &total) ||
      __builtin_add_overflow(total, rows, &total))
    return std::nullopt;
  return total;
}

Result<Segment*> segment_of(Session& session, const protocol::CopyAcross& copy, const protocol::PeerEnd& end) {
  const auto bytes = extent(copy, end);
  if (!bytes)
    return fail(ErrorCode::kProtocol, "a copy of %lu x %lu x %lu bytes, rows %lu and slices %lu apart, is no copy",
                number(copy.width), number(copy.height), number(copy.depth), number(end.pitch), number(end.slice));
  const auto behind = session.by_address.upper_bound(end.address);
  if (behind != session.by_address.begin()) {
    Segment& segment = session.segments.at(std::prev(behind)->second);
    const uint64_t offset = end.address - segment.address;
    if (segment.kind == SegmentKind::kDevice && offset < segment.bytes.value && *bytes <= segment.bytes.value - offset)
      return &segment;
  }
  return fail(ErrorCode::kProtocol, "a copy of %lu bytes at %#lx: they do not lie in one of the session's segments",
              number(*bytes), number(end.address));
}

}  // namespace

Result<CopyEnds> check_copy(Session& session, const protocol::CopyAcross& copy) {
  const auto to = segment_of(session, copy, copy.to);
  if (!to) return tl::unexpected(to.error());
  const auto from = segment_of(session, copy, copy.from);
  if (!from) return tl::unexpected(from.error());
  return CopyEnds{*to, *from};
}

Result<SegmentVerdict> check_segment(const Session& session, const DeclareSegment& declared, const Limits& limits,
                                     const Executor& executor) {
  if (!session.window || declared.virtual_device >= session.devices.size() ||
      !session.devices[declared.virtual_device].ring)
    return fail(ErrorCode::kProtocol, "segment %lu is for virtual device %u, which is not open",
                number(declared.number), declared.virtual_device);
  if (declared.kind < SegmentKind::kDevice || declared.kind > SegmentKind::kDriver)
    return fail(ErrorCode::kProtocol, "segment %lu is of no known kind (%u)", number(declared.number),
                static_cast<unsigned>(declared.kind));
  if (declared.number == 0) return fail(ErrorCode::kProtocol, "segment number 0: numbers begin at 1");
  // Asked for again, by a program that heddled's forerunner left without an answer: what it noted of that is here.
  const bool asked_again = session.resumed && declared.request != 0 && !session.segments.contains(declared.number);
  if (declared.number <= session.highest_segment && !asked_again) return check_old_number(session, declared);
  HEDDLE_TRY(check_range(session, declared));
  if (const Segment* other = overlapped(session, declared)) {
    if (may_be_on_its_way_back(session, *other, executor)) return SegmentVerdict::kAwaitsFree;
    return fail(ErrorCode::kProtocol, "segment %lu at %#lx with %lu bytes overlaps segment %lu",
                number(declared.number), number(declared.address), number(declared.bytes), number(other->number));
  }
  // The program keeps the limit itself, and counts a free before heddled hears of it: to stop it for each of those
  // would hold up what it asks meanwhile.
  const uint64_t allowed = uint64_t{limits.segments_per_session} * kSegmentsOnTheirWayBack;
  if (session.segments.size() < allowed) return SegmentVerdict::kNew;
  const bool awaits_free = std::any_of(session.segments.begin(), session.segments.end(), [&](const auto& each) {
    return may_be_on_its_way_back(session, each.second, executor);
  });
  if (!awaits_free)
    return fail(ErrorCode::kLimitExceeded,
                "the session has %zu pieces of memory, and limits.segments_per_session allows no more",
                session.segments.size());
  return SegmentVerdict::kAwaitsFree;
}

}  // namespace heddle::daemon
