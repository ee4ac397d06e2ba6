#include "daemon/segment_store.h"

#include "daemon/warm_target.h"

namespace heddle::daemon {

Segment& SegmentStore::add(Session& session, const protocol::DeclareSegment& declared) {
  Segment segment;
  segment.id = SegmentId{shared_.ids.next()};
  segment.number = declared.number;
  segment.address = declared.address;
  segment.bytes = Bytes{declared.bytes};
  segment.kind = declared.kind;
  segment.virtual_device = declared.virtual_device;
  segment.answers = declared.request;
  segment.number_again = declared.number <= session.highest_segment;
  session.highest_segment = std::max(session.highest_segment, declared.number);
  session.by_address[declared.address] = declared.number;
  Segment& placed = session.segments.emplace(declared.number, std::move(segment)).first->second;
  if (placed.kind == protocol::SegmentKind::kHost) {
    session.host_bytes += placed.bytes;
    shared_.registry.host_bytes += placed.bytes;
    deposit(session, placed);
  }
  return placed;
}

Status SegmentStore::back(Session& session, Segment& segment) {
  if (segment.swap.place == Segment::Swap::kOnHost) return back_on_host(session, segment);
  if (segment.memory || segment.request != 0) return {};
  // Nobody maps what is no memory of the program's: its descriptor says only that it was granted.
  const DeviceState* gpu =
      segment.kind != protocol::SegmentKind::kDevice ? nullptr : shared_.registry.gpu_of(session, segment);
  if (gpu) {
    ask_keeper(session, segment, gpu->config.uuid);
    return {};
  }
  auto memory = create_memfd("heddle-segment", segment.bytes);
  if (!memory) return tl::unexpected(std::move(memory).error());
  segment.memory = std::move(*memory);
  deposit(session, segment);
  return {};
}

Status SegmentStore::back_on_host(Session& session, Segment& segment) {
  if (segment.swap.memory || segment.swap.request != 0) return {};
  swap_space_.limit_kept();
  if (const DeviceState* gpu = shared_.registry.gpu_of(session, segment)) {
    segment.swap.request = new_request();
    ++session.devices[segment.virtual_device].requests;
    keepers_.allocate(
        {gpu->id, gpu->config.uuid, session.id, segment.number, segment.swap.request, segment.bytes, true});
    return {};
  }
  auto memory = create_memfd("heddle-on-host", segment.bytes);
  if (!memory) return tl::unexpected(std::move(memory).error());
  segment.swap.memory = std::move(*memory);
  deposit(session, segment);
  return {};
}

void SegmentStore::ask_keeper(Session& session, Segment& segment, const std::string& uuid) {
  VirtualDevice& device = session.devices[segment.virtual_device];
  segment.request = new_request();
  // Of a number that was there before, a worker may say again that it was freed: what it says then counts for the
  // ledger, and other programs get the memory only once nobody has it any more.
  if (!segment.number_again) segment.returns_to = device.task->device;
  segment.given = segment.asked_again = false;
  ++device.requests;
  keepers_.allocate({device.task->device, uuid, session.id, segment.number, segment.request, segment.bytes});
}

std::optional<SegmentStore::Arrived> SegmentStore::arrived(MemoryAnswered answered) {
  auto& [request, memory] = answered;
  Segment* segment = waiting(request);
  if (!segment) {
    if (memory && !request.on_host) keepers_.take_back(request.device, std::move(*memory), request.bytes);
    return std::nullopt;
  }
  Session& session = *shared_.registry.find_session(request.session);
  forget_request(session, *segment);
  if (!memory) return Arrived{&session, segment, std::move(memory).error()};
  (request.on_host ? segment->swap.memory : segment->memory) = std::move(*memory);
  deposit(session, *segment);
  return Arrived{&session, segment, std::nullopt};
}

bool SegmentStore::may_ask_again(const MemoryAnswered& answered) {
  if (answered.memory || answered.memory.error().code != ErrorCode::kOutOfMemory || answered.request.on_host)
    return false;
  Segment* segment = waiting(answered.request);
  return segment && !std::exchange(segment->asked_again, true);
}

void SegmentStore::ask_again(const MemoryRequest& request) {
  if (waiting(request)) keepers_.allocate(request);
}

// None where the segment has gone meanwhile, or belongs to another task by now.
Segment* SegmentStore::waiting(const MemoryRequest& request) {
  Session* session = shared_.registry.find_session(request.session);
  if (!session) return nullptr;
  const auto found = session->segments.find(request.segment);
  if (found == session->segments.end()) return nullptr;
  Segment& segment = found->second;
  const bool on_host = segment.swap.place == Segment::Swap::kOnHost;
  const uint64_t awaited = !request.on_host ? segment.request : on_host ? segment.swap.request : 0;
  return awaited == request.request ? &segment : nullptr;
}

void SegmentStore::give(Segment& segment) {
  if (std::exchange(segment.given, true)) segment.returns_to.reset();
}

void SegmentStore::dispose(const Segment& segment, Fd memory) {
  if (memory && segment.returns_to && !segment.given)
    keepers_.take_back(*segment.returns_to, std::move(memory), segment.bytes);
}

void SegmentStore::forget_request(Session& session, Segment& segment) {
  uint64_t& requests = session.devices[segment.virtual_device].requests;
  if (std::exchange(segment.request, 0) != 0) --requests;
  if (segment.swap.place == Segment::Swap::kOnHost && std::exchange(segment.swap.request, 0) != 0) --requests;
}

void SegmentStore::leave(Session& session, Segment& segment) {
  segment.swap.place = Segment::Swap::kLeaving;
  session.devices[segment.virtual_device].swapped += segment.bytes;
  shared_.registry.swapped += segment.bytes;
}

void SegmentStore::left(Session& session, Segment& segment) {
  forget_request(session, segment);
  Fd memory = std::move(segment.memory);
  segment.swap.place = Segment::Swap::kSwapped;
  deposit(session, segment);  // before the descriptor goes: the vault link borrows it
  dispose(segment, std::move(memory));
}

void SegmentStore::returned(Session& session, Segment& segment) {
  segment.swap.place = Segment::Swap::kLeaving;  // what lies on the device is what counts
  deposit(session, segment);
  stay(session, segment);
}

void SegmentStore::put_on_host(Session& session, Segment& segment) {
  leave(session, segment);
  segment.swap.place = Segment::Swap::kOnHost;
}

// One that was granted, and has no memory yet, holds nothing that could be lost.
void SegmentStore::swapped_from_host(Session& session, Segment& segment) {
  forget_request(session, segment);
  if (!segment.swap.memory) return stay(session, segment);
  segment.swap.place = Segment::Swap::kSwapped;
  deposit(session, segment);
}

void SegmentStore::stay(Session& session, Segment& segment) {
  if (segment.swap.place == Segment::Swap::kNone) return;
  session.devices[segment.virtual_device].swapped -= segment.bytes;
  shared_.registry.swapped -= segment.bytes;
  swap_space_.release(segment);
  segment.swap = {};
}

void SegmentStore::unback(Session& session, Segment& segment) {
  forget_request(session, segment);
  Fd on_host;  // until the deposit: the vault link borrows it
  if (segment.swap.on_host()) {
    on_host = std::move(segment.swap.memory);
    stay(session, segment);
    if (!segment.memory) return deposit(session, segment);
  }
  drop_device_memory(session, segment);
}

void SegmentStore::drop_device_memory(Session& session, Segment& segment) {
  forget_request(session, segment);
  if (!segment.memory) return;
  if (segment.copies != 0) copies_.end_all(session, segment);
  Fd memory = std::move(segment.memory);
  deposit(session, segment);  // before the descriptor goes: the vault link borrows it
  dispose(segment, std::move(memory));
}

void SegmentStore::remove(Session& session, uint64_t number) {
  const auto found = session.segments.find(number);
  if (found == session.segments.end()) return;
  Segment& segment = found->second;
  forget_request(session, segment);
  if (segment.copies != 0) copies_.end_all(session, segment);
  if (segment.kind == protocol::SegmentKind::kHost) {
    session.host_bytes -= segment.bytes;
    shared_.registry.host_bytes -= segment.bytes;
  }
  shared_.vault.withdraw(NoteKind::kSegment, segment.id.value);
  stay(session, segment);
  session.by_address.erase(segment.address);
  dispose(segment, std::move(segment.memory));
  session.segments.erase(found);
  // Its number must not look new after a restart.
  if (number == session.highest_segment && !session.ending) deposit_session(session);
  if (session.deferred) shared_.events.post(SegmentRemoved{session.id});
}

Status SegmentStore::back_all(Session& session, uint32_t virtual_device) {
  for (Segment* segment : of_device(session, virtual_device)) {
    if (segment->state == Segment::State::kHeld) HEDDLE_TRY(back(session, *segment));
  }
  return {};
}

void SegmentStore::remove_all(Session& session, uint32_t virtual_device) {
  for (const Segment* segment : of_device(session, virtual_device)) remove(session, segment->number);
  session.devices[virtual_device].live = {};
}

void SegmentStore::let_go_all(Session& session, uint32_t virtual_device) {
  for (Segment* segment : of_device(session, virtual_device)) let_go(*segment);
}

void SegmentStore::deposit(const Session& session, const Segment& segment) {
  SegmentNote note{};
  note.session = session.id.value;
  note.number = segment.number;
  note.address = segment.address;
  note.bytes = segment.bytes.value;
  note.kind = segment.kind;
  note.virtual_device = segment.virtual_device;
  const bool swapped = segment.swap.counts();
  const Fd& memory = swapped ? segment.swap.memory : segment.memory;
  note.memory = segment.swap.on_host() ? SegmentNote::kOnHost
                : swapped              ? SegmentNote::kInSwapSpace
                : memory               ? SegmentNote::kOnDevice
                                       : SegmentNote::kNone;
  note.held = segment.state == Segment::State::kHeld ? 1 : 0;
  shared_.vault.deposit(NoteKind::kSegment, segment.id.value, write_note(note), memory.get());
}

void SegmentStore::deposit_session(const Session& session) {
  SessionNote note{};
  note.job = session.job.value;
  note.secret = session.secret;
  note.budget_bytes = session.budget.value;
  note.highest_segment = session.highest_segment;
  note.uid = session.uid;
  note.pid = static_cast<uint32_t>(session.pid);
  note.device_count = static_cast<uint32_t>(session.devices.size());
  note.seen_devices = session.seen_devices;
  if (session.window) note.window = *session.window;
  protocol::set_text(note.program, session.program);
  protocol::set_text(note.model, session.model);
  shared_.vault.deposit(NoteKind::kSession, session.id.value, write_note(note), session.process.get());
}

Bytes SegmentStore::backed_on(const DeviceState& gpu) const {
  Bytes sum;
  for (const auto& [id, session] : shared_.registry.sessions) {
    for (const auto& [number, segment] : session.segments) {
      if (segment.memory && shared_.registry.gpu_of(session, segment) == &gpu) sum += segment.bytes;
    }
  }
  return sum;
}

void SegmentStore::limit_pool(DeviceId device) {
  const Bytes unused = unused_on(device);
  keepers_.keep_at_most(device, unused - Bytes{unused.value / kFreeMemoryPart});
}

// Of the GPU's memory that is heddled's, what neither segments have nor contexts are charged.
Bytes SegmentStore::unused_on(DeviceId device) const {
  const DeviceState& gpu = shared_.registry.devices[device.value];
  Bytes used = backed_on(gpu);
  for (const auto& [id, worker] : shared_.registry.workers) {
    if (worker.device == device && worker.state == Worker::State::kBound) used += Bytes{gpu.config.model.context_bytes};
  }
  const Bytes capacity{gpu.config.model.memory_bytes};
  return used < capacity ? capacity - used : Bytes{};
}

std::vector<Segment*> SegmentStore::of_device(Session& session, uint32_t virtual_device) {
  std::vector<Segment*> segments;
  for (auto& [number, segment] : session.segments) {
    if (segment.kind != protocol::SegmentKind::kHost && segment.virtual_device == virtual_device)
      segments.push_back(&segment);
  }
  return segments;
}

std::vector<Segment*> SegmentStore::on_host(Session& session) {
  std::vector<Segment*> segments;
  for (auto& [number, segment] : session.segments) {
    if (segment.kind == protocol::SegmentKind::kHost) segments.push_back(&segment);
  }
  return segments;
}

}  // namespace heddle::daemon
