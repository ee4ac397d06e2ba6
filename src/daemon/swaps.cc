#include "daemon/swaps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace heddle::daemon {
namespace {

using Place = Segment::Swap::Place;

// Its copy there is whole, or has not begun.
bool at_rest(const Segment& segment) {
  return segment.request == 0 && segment.swap.request == 0 && segment.swap.copy == 0;
}

bool is_moving(const Segment& segment) {
  const Place place = segment.swap.place;
  return place == Place::kLeaving || place == Place::kReturning || place == Place::kPromoting;
}

protocol::CopyMemory whole(uint64_t number, Bytes size) {
  protocol::CopyMemory message;
  message.copy = number;
  message.to_bytes = message.from_bytes = message.width = size.value;
  message.height = message.depth = 1;
  return message;
}

}  // namespace

// What stands for memory that its worker's driver has taken has no bytes to keep.
std::vector<Segment*> Swaps::to_leave(Session& session, const VirtualDevice& device) const {
  std::vector<Segment*> segments = SegmentStore::of_device(session, device.index);
  std::erase_if(segments, [](const Segment* each) {
    return each->kind != protocol::SegmentKind::kDevice || !each->memory || each->swap.place != Place::kNone;
  });
  return segments;
}

Status Swaps::has_space_for(Session& session, const VirtualDevice& device) const {
  const Bytes limit = *shared_.config.swap.host, used = shared_.registry.swapped;
  Bytes wanted;
  for (const Segment* segment : to_leave(session, device)) wanted += segment->bytes;
  if (limit.value == 0)
    return fail(ErrorCode::kNotSupported, "this heddled has no swap space (swap.host in its configuration is 0)");
  if (used <= limit && wanted <= limit - used) return {};
  return fail(ErrorCode::kLimitExceeded, "it has %s, and %s of the %s of swap space (swap.host) is in use",
              to_string(wanted).c_str(), to_string(used).c_str(), to_string(limit).c_str());
}

void Swaps::out(Session& session, VirtualDevice& device) {
  begin(device);
  for (Segment* segment : to_leave(session, device)) {
    if (segment->copies != 0) copies_.end_all(session, *segment);
    segments_.leave(session, *segment);
  }
  const std::vector<Segment*> leave = leaving(session, device);
  for (Segment* segment : leave) {
    if (const DeviceState* gpu = shared_.registry.gpu_of(session, *segment)) (void)space_.reuse(gpu->id, *segment);
  }
  space_.limit_kept();  // what they have now is kept no more
  for (Segment* segment : leave) {
    if (segment->swap.memory) {
      copy(session, *segment);
    } else {
      make_space(session, *segment);
    }
  }
  look(session, device);
}

std::vector<Segment*> Swaps::leaving(Session& session, const VirtualDevice& device) {
  std::vector<Segment*> segments = SegmentStore::of_device(session, device.index);
  std::erase_if(segments, [](const Segment* each) { return each->swap.place != Place::kLeaving; });
  return segments;
}

void Swaps::begin(VirtualDevice& device) {
  ++device.swap_attempt;
  device.copies_began = {};
}

void Swaps::make_space(Session& session, Segment& segment) {
  if (const DeviceState* gpu = shared_.registry.gpu_of(session, segment)) {
    segment.swap.request = segments_.new_request();
    return keepers_.allocate({gpu->id, gpu->config.uuid, session.id, segment.number, segment.swap.request,
                              segment.bytes, true, space_.new_mapping()});
  }
  auto memory = create_memfd("heddle-swapped", segment.bytes);
  if (!memory) return failed(session.devices[segment.virtual_device], memory.error());
  segment.swap.memory = std::move(*memory);
  copy(session, segment);
}

void Swaps::space_made(MemoryAnswered answered) {
  Session* session = shared_.registry.find_session(answered.request.session);
  const auto found = session ? session->segments.find(answered.request.segment) : decltype(session->segments.end()){};
  if (!session || found == session->segments.end()) return space_.release(std::move(answered));
  Segment& segment = found->second;
  if (segment.swap.request != answered.request.request) return space_.release(std::move(answered));
  segment.swap.request = 0;
  if (!answered.memory) return failed(session->devices[segment.virtual_device], answered.memory.error());
  SwapSpace::give(segment, std::move(answered));
  copy(*session, segment);
}

void Swaps::in(Session& session, VirtualDevice& device) {
  begin(device);
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->swap.place != Place::kSwapped) continue;
    segment->swap.place = Place::kReturning;
    if (const Status backed = segments_.back(session, *segment); !backed) return failed(device, backed.error());
    if (segment->memory) copy(session, *segment);
  }
  look(session, device);
}

void Swaps::promote(Session& session, VirtualDevice& device) {
  begin(device);
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->swap.place != Place::kPromoting) continue;
    if (const Status backed = segments_.back(session, *segment); !backed) return failed(device, backed.error());
    if (segment->memory) copy(session, *segment);
  }
  look(session, device);
}

void Swaps::memory_came(Session& session, Segment& segment) {
  const Place place = segment.swap.place;
  if (place == Place::kReturning || place == Place::kPromoting) copy(session, segment);
}

void Swaps::no_memory_came(const Session& session, const Segment& segment, const Error& why) {
  failed(session.devices[segment.virtual_device], why);
}

void Swaps::copy(Session& session, Segment& segment) {
  const bool out = segment.swap.place == Place::kLeaving;
  const Fd& to = out ? segment.swap.memory : segment.memory;
  const Fd& from = out ? segment.memory : segment.swap.memory;
  segment.swap.copy = keepers_.new_copy();
  TimePoint& began = session.devices[segment.virtual_device].copies_began;
  if (began == TimePoint{}) began = shared_.now();
  under_way_[segment.swap.copy] = {session.id, segment.number};
  if (const DeviceState* gpu = shared_.registry.gpu_of(session, segment)) {
    protocol::CopyMemory message = whole(segment.swap.copy, segment.bytes);
    if (segment.swap.mapped_by == gpu->id) (out ? message.to_mapping : message.from_mapping) = segment.swap.mapping;
    keepers_.copy(gpu->id, gpu->config.uuid, message, to, from);
  } else {
    copier_.copy(segment.swap.copy, to, from, segment.bytes);
  }
}

bool Swaps::over(uint64_t copy, const Status& status) {
  const auto found = under_way_.find(copy);
  if (found == under_way_.end()) return false;
  const UnderWay was = found->second;
  under_way_.erase(found);
  Session* session = shared_.registry.find_session(was.session);
  const auto of = session ? session->segments.find(was.segment) : decltype(session->segments.end()){};
  if (!session || of == session->segments.end() || of->second.swap.copy != copy) return true;
  of->second.swap.copy = 0;
  VirtualDevice& device = session->devices[of->second.virtual_device];
  if (status) {
    look(*session, device);
  } else {
    failed(device, status.error());
  }
  return true;
}

// Whether all of it is there.
void Swaps::look(Session& session, VirtualDevice& device) {
  const auto segments = SegmentStore::of_device(session, device.index);
  const bool all = std::none_of(segments.begin(), segments.end(),
                                [](const Segment* each) { return is_moving(*each) && !at_rest(*each); });
  if (all && device.task) shared_.events.post(MemoryMoved{device.task->id, device.swap_attempt, {}});
}

void Swaps::failed(const VirtualDevice& device, const Error& why) {
  if (device.task) shared_.events.post(MemoryMoved{device.task->id, device.swap_attempt, tl::unexpected(why)});
}

void Swaps::stop(Session& session, VirtualDevice& device) {
  ++device.swap_attempt;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (!is_moving(*segment)) continue;
    stop_copy(session, *segment);
    if (segment->swap.place == Place::kLeaving) {
      segments_.stay(session, *segment);
    } else if (segment->swap.place == Place::kPromoting) {
      segments_.drop_device_memory(session, *segment);
      segment->swap.place = Place::kOnHost;
    } else {
      segment->swap.place = Place::kSwapped;
    }
  }
}

// A part of it may still run, with a keeper that is ending: what it reads or writes is nobody else's.
void Swaps::stop_copy(const Session& session, Segment& segment) {
  segment.swap.request = 0;
  if (segment.swap.copy == 0) return;
  if (segment.swap.place == Place::kLeaving) space_.release(segment);
  const uint64_t copy = std::exchange(segment.swap.copy, 0);
  under_way_.erase(copy);
  copier_.cancel(copy);
  const DeviceState* gpu = shared_.registry.gpu_of(session, segment);
  if (gpu) keepers_.cancel(gpu->id, copy);
  segment.returns_to.reset();
}

void Swaps::left(Session& session, VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->swap.place == Place::kLeaving) {
      segments_.left(session, *segment);
    } else if (segment->swap.on_host()) {
      segments_.swapped_from_host(session, *segment);
    } else {
      segments_.unback(session, *segment);
    }
  }
}

void Swaps::returned(Session& session, VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    const Place place = segment->swap.place;
    if (place == Place::kReturning || place == Place::kPromoting) segments_.returned(session, *segment);
  }
}

}  // namespace heddle::daemon
