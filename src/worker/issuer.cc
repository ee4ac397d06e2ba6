#include "worker/issuer.h"

#include <algorithm>
#include <cstring>

#include "core/log.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

// A tenant can write to the bell and so lose our wake-up: then we look for ourselves this much later.
constexpr Duration kLongestSleep = std::chrono::seconds(1);
// The first sleeps are shorter: a program that has called nothing for two of them gives back what it has freed. One
// that frees and allocates in a loop is back long before.
constexpr Duration kFirstSleep = std::chrono::milliseconds(25);

}  // namespace

Issuer::Issuer(const SessionParts& parts, Modules& modules, const Binding& binding, protocol::RingReader reader)
    : parts_(parts),
      modules_(modules),
      binding_(binding),
      bounds_{&parts.ring, binding.window},
      reader_(reader),
      segments_(parts.context),
      streams_(parts.context, parts.ring, parts.progress),
      textures_(parts.context, parts.ring),
      idle_(parts.ring.header()),
      entered_(parts.progress.completed()),
      nap_(kFirstSleep) {}

void Issuer::post(protocol::Packet packet) {
  inbox_.put(std::move(packet));
  protocol::ring_bell(parts_.ring.header().to_worker);
}

void Issuer::stop() {
  stopping_.store(true, std::memory_order_release);
  protocol::ring_bell(parts_.ring.header().to_worker);
}

void Issuer::run() {
  restore();
  protocol::Bell& bell = parts_.ring.header().to_worker;
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t seen = protocol::read_bell(bell);
    attend();
    if (next() && take()) {
      nap_ = kFirstSleep;
      continue;
    }
    parts_.context.flush();
    rest(bell, seen);
  }
}

// Between two launches of a program that waits for each. Without processors to spare it would wait for this thread's
// looking, too.
void Issuer::rest(protocol::Bell& bell, uint32_t seen) {
  const bool watch = serving_ && protocol::spare_watch() > Duration::zero();
  const bool rung = (watch ? protocol::watch_bell : protocol::wait_bell)(bell, seen, nap_);
  if (rung) return;
  const bool again = nap_ > kFirstSleep;
  nap_ = std::min(2 * nap_, kLongestSleep);
  if (again && is_quiet()) (void)reclaim_idle();
}

// What the journal has beside modules and streams.
void Issuer::restore() {
  const protocol::RingHeader& header = parts_.ring.header();
  auto restored = textures_.restore(parts_.progress.completed());
  const uint64_t stack = header.stack_bytes.load(std::memory_order_acquire);
  const uint64_t heap = header.heap_bytes.load(std::memory_order_acquire);
  if (restored && stack) restored = set_limit(device::Limit::kStackBytes, stack);
  if (restored && heap) restored = set_limit(device::Limit::kHeapBytes, heap);
  if (!restored) parts_.fault.raise(restored.error());
}

// ---- Between records ----

void Issuer::attend() {
  for (const protocol::Packet& packet : inbox_.take()) receive(packet);
  if (!deferred_.empty()) settle_deferred();
  reclaim_if_asked();
  if (!host_calls_.empty()) settle_host_calls();
}

void Issuer::receive(const protocol::Packet& packet) {
  if (packet.type == protocol::MessageType::kMapSegment) return map(packet);
  if (packet.type == protocol::MessageType::kProceed) {
    may_take_ = serving_;  // one for a task that has ended was on its way
    return;
  }
  if (packet.type == protocol::MessageType::kNextTask) return begin_task(packet.as<protocol::NextTask>().task_serial);
  if (packet.type == protocol::MessageType::kDeviceFault) {
    const auto fault = packet.as<protocol::DeviceFault>();
    return parts_.fault.raise({fault.cuda_error, protocol::get_text(fault.text)});
  }
  if (packet.type != protocol::MessageType::kModule || packet.descriptors.empty()) {
    logger("worker")->error("message {} makes no sense to a bound worker", static_cast<unsigned>(packet.type));
    return;
  }
  const auto module = packet.as<protocol::Module>();
  const auto added = modules_.add(module.module, packet.descriptors[0], Bytes{module.bytes});
  if (!added) parts_.fault.raise(refusal_of("module", added.error()));
}

void Issuer::map(const protocol::Packet& packet) {
  const auto segment = packet.as<protocol::MapSegment>();
  if (segment.release) {
    // The program has given it back, but work that was issued before may still use it.
    deferred_.push_back({Deferred::Kind::kReleaseHost, entered_, 0, segment.number});
    return;
  }
  // For a task that has ended: sent before heddled heard of that.
  if (!serving_ && segment.kind != protocol::SegmentKind::kHost) return;
  const auto mapped = packet.descriptors.empty() ? fail(ErrorCode::kProtocol, "segment %lu came without its memory",
                                                        static_cast<unsigned long>(segment.number))
                                                 : segments_.map(segment, packet.descriptors[0]);
  if (!mapped) parts_.fault.raise(refusal_of("memory", mapped.error()));
}

// ---- One record ----

bool Issuer::next() {
  if (have_record_) return true;
  if (!reading_ || !may_take_) return false;
  const auto got = reader_.next(record_);
  if (got && *got && parts_.progress.has_room(record_.header.sequence)) return have_record_ = true;
  if (got && !*got) return false;
  reading_ = false;
  parts_.fault.raise({kCudaUnknown, got ? "the ring holds more records than there is room for" : got.error().text});
  return false;
}

// False where the record has to wait. One that is refused fails the session and is done with; so is everything that
// follows, so that the program comes to look at the fault instead of waiting for ever.
bool Issuer::take() {
  auto step = issue();
  if (!step) {
    parts_.fault.raise(step.error());
    step = here();
  }
  if (*step == Step::kWait) return false;
  entered_ = record_.header.sequence;
  have_record_ = false;
  return true;
}

Checked<Issuer::Step> Issuer::issue() {
  const protocol::RecordHeader& header = record_.header;
  // These take effect after a fault too: memory goes back, the task ends.
  if (header.type == RecordType::kFree) return defer(Deferred::Kind::kFree);
  if (header.type == RecordType::kTaskEnd) return end_task();
  if (parts_.fault.raised()) return here();
  switch (header.type) {
    case RecordType::kNeed:
      return segments_.mapped(header.a) ? here() : Step::kWait;
    case RecordType::kLaunch:
      return launch();
    case RecordType::kCopy:
      return copy();
    case RecordType::kFill:
      return fill();
    case RecordType::kEventRecord: {
      const auto valid = check_event(header);
      if (!valid) return tl::unexpected(valid.error());
      return in_turn();
    }
    case RecordType::kMarker:
      return in_turn();
    case RecordType::kEventWait:
      return wait_for_event();
    case RecordType::kHostCall:
      return host_call();
    case RecordType::kSymbol:
      return symbol();
    case RecordType::kReset:
      reset_ = true;
      return here();
    case RecordType::kPrefetchModule:
      return prefetch();
    case RecordType::kTexture:
    case RecordType::kTextureGone:
      return texture();
    case RecordType::kLimit:
      return limit();
    case RecordType::kLibraryOpen:
      return open_library();
    case RecordType::kLibraryCall:
      return call_library();
    default:
      return malformed("record type %u does not exist", static_cast<unsigned>(header.type));
  }
}

// The record needs nothing of the device.
Checked<Issuer::Step> Issuer::here() {
  parts_.progress.enter(record_);
  parts_.progress.finish(record_.header.sequence);
  return Step::kTaken;
}

template <class Call>
Checked<Issuer::Step> Issuer::hand_over(const char* what, uint64_t bytes, Call&& call) {
  const uint64_t sequence = record_.header.sequence;
  const auto prepared = streams_.prepare(record_.header.stream);
  if (!prepared) return tl::unexpected(refusal_of("stream", prepared.error()));
  parts_.progress.enter(record_, bytes);
  parts_.progress.hand_over(sequence);
  const Status status = call(record_.header.stream, sequence);
  if (status) return Step::kTaken;
  parts_.progress.take_back(sequence);
  return tl::unexpected(refusal_of(what, status.error()));
}

Checked<Issuer::Step> Issuer::in_turn() {
  const auto prepared = streams_.prepare(record_.header.stream);
  if (!prepared) return tl::unexpected(refusal_of("stream", prepared.error()));
  if (streams_.has_turn(record_.header.stream, record_.header.sequence)) return here();
  return hand_over("marker", 0, [this](uint32_t stream, device::Tag tag) { return parts_.context.mark(stream, tag); });
}

Checked<Issuer::Step> Issuer::launch() {
  const auto record = record_.as<protocol::LaunchRecord>();
  if (record.module == 0) return malformed("a launch names module 0");
  if (!modules_.known(record.module)) return Step::kWait;
  const auto target = modules_.kernel(record.module, record.kernel);
  if (!target) return tl::unexpected(target.error());
  const auto config = check_launch(record, record_.trailing<protocol::LaunchRecord>(), *target->info, binding_.model);
  if (!config) return tl::unexpected(config.error());
  return hand_over("launch", 0, [&](uint32_t stream, device::Tag tag) {
    return parts_.context.launch(stream, *target->kernel, *config, tag);
  });
}

Checked<bool> Issuer::find_variable(const protocol::CopyEnd& end, device::Variable& variable) {
  if (end.place != protocol::Place::kSymbol) return true;
  if (end.module == 0) return malformed("a copy names module 0");
  if (!modules_.known(end.module)) return false;
  const auto found = modules_.variable(end.module, end.index);
  if (!found) return tl::unexpected(found.error());
  variable = *found;
  return true;
}

Checked<Issuer::Step> Issuer::copy() {
  const auto record = record_.as<protocol::CopyRecord>();
  device::Variable to, from;
  for (const auto& [end, variable] : {std::pair(&record.to, &to), std::pair(&record.from, &from)}) {
    const auto found = find_variable(*end, *variable);
    if (!found) return tl::unexpected(found.error());
    if (!*found) return Step::kWait;
  }
  const auto checked = check_copy(record, bounds_, to, from);
  if (!checked) return tl::unexpected(checked.error());
  if (checked->bytes == 0) return in_turn();
  return hand_over("copy", checked->bytes, [&](uint32_t stream, device::Tag tag) {
    return parts_.context.copy(stream, checked->direction, checked->shape, tag);
  });
}

Checked<Issuer::Step> Issuer::fill() {
  const auto record = record_.as<protocol::FillRecord>();
  device::Variable to;
  const auto found = find_variable(record.to, to);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return Step::kWait;
  const auto checked = check_fill(record, bounds_, to);
  if (!checked) return tl::unexpected(checked.error());
  if (checked->bytes == 0) return in_turn();
  return hand_over("fill", checked->bytes,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.fill(stream, checked->shape, tag); });
}

Checked<Issuer::Step> Issuer::wait_for_event() {
  const uint64_t awaited = record_.header.b;
  const auto valid = check_event(record_.header);
  if (!valid) return tl::unexpected(valid.error());
  if (parts_.progress.done(awaited)) return in_turn();
  // Something that the device knows nothing of (a free): we are woken when it is done.
  if (!parts_.progress.pending(awaited).on_device) return Step::kWait;
  return hand_over("event wait", 0,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.wait(stream, awaited, tag); });
}

Checked<Issuer::Step> Issuer::host_call() {
  auto step =
      hand_over("host call", 0, [this](uint32_t stream, device::Tag tag) { return parts_.context.hold(stream, tag); });
  if (step) host_calls_.push_back({record_.header.stream, record_.header.sequence});
  return step;
}

Checked<Issuer::Step> Issuer::symbol() {
  const auto record = record_.as<protocol::SymbolRecord>();
  const auto room = check_symbol(record, bounds_);
  if (!room) return tl::unexpected(room.error());
  if (record.module == 0) return malformed("a symbol of module 0");
  if (!modules_.known(record.module)) return Step::kWait;
  const auto variable = modules_.variable(record.module, record.index);
  if (!variable) return tl::unexpected(variable.error());
  const uint64_t answer[2] = {variable->address, variable->bytes};
  std::memcpy(room->data(), answer, sizeof answer);
  return here();
}

Checked<Issuer::Step> Issuer::prefetch() {
  const uint64_t id = record_.header.a;
  if (id == 0 || id > UINT32_MAX) return malformed("module %lu cannot be", static_cast<unsigned long>(id));
  if (!modules_.known(static_cast<uint32_t>(id))) return Step::kWait;
  const auto loaded = modules_.load(static_cast<uint32_t>(id));
  if (!loaded) return tl::unexpected(loaded.error());
  return here();
}

Checked<Issuer::Step> Issuer::texture() {
  const protocol::RecordHeader& header = record_.header;
  const bool created = header.type == RecordType::kTexture;
  const auto changed = created ? textures_.created(header.a) : textures_.gone(header.a);
  if (!changed) return tl::unexpected(changed.error());
  return here();
}

Checked<Issuer::Step> Issuer::limit() {
  const protocol::RecordHeader& header = record_.header;
  const auto kind = static_cast<protocol::LimitKind>(header.a);
  if (kind != protocol::LimitKind::kStackBytes && kind != protocol::LimitKind::kHeapBytes)
    return malformed("limit %lu does not exist", static_cast<unsigned long>(header.a));
  const bool stack = kind == protocol::LimitKind::kStackBytes;
  const auto set = set_limit(stack ? device::Limit::kStackBytes : device::Limit::kHeapBytes, header.b);
  if (!set) return tl::unexpected(set.error());
  return here();
}

Checked<void> Issuer::set_limit(device::Limit limit, uint64_t bytes) {
  const Status set = parts_.context.set_limit(limit, bytes);
  if (set) return {};
  return tl::unexpected(refusal_of("limit", set.error()));
}

// A library that cannot be had is the program's to deal with: no fault.
Checked<Issuer::Step> Issuer::open_library() {
  const auto record = record_.as<protocol::LibraryOpenRecord>();
  const auto room = check_library_open(record, bounds_);
  if (!room) return tl::unexpected(room.error());
  const auto version = parts_.context.open_library(static_cast<library::Library>(record.library));
  protocol::LibraryOpened answer{};
  if (version) answer.version = *version;
  if (!version) {
    const Refusal refusal =
        refusal_of(library::name_of(static_cast<library::Library>(record.library)), version.error());
    answer.cuda_error = refusal.cuda_error;
    refusal.text.copy(answer.text, sizeof answer.text - 1);
  }
  std::memcpy(room->data(), &answer, sizeof answer);
  return here();
}

Checked<Issuer::Step> Issuer::call_library() {
  const auto record = record_.as<protocol::LibraryCallRecord>();
  const auto call = check_library_call(record, record_.trailing<protocol::LibraryCallRecord>());
  if (!call) return tl::unexpected(call.error());
  return hand_over(library::name_of(call->call()), 0,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.call(stream, call->call(), tag); });
}

Checked<Issuer::Step> Issuer::defer(Deferred::Kind kind) {
  const uint64_t sequence = record_.header.sequence;
  parts_.progress.enter(record_);
  deferred_.push_back({kind, sequence - 1, sequence, record_.header.a});
  return Step::kTaken;
}

Checked<Issuer::Step> Issuer::end_task() {
  const uint64_t serial = record_.header.a;
  if (serial != binding_.task_serial)
    parts_.fault.raise(
        {kCudaUnknown, stringf("the program ends task %lu, this is task %lu", static_cast<unsigned long>(serial),
                               static_cast<unsigned long>(binding_.task_serial))});
  reading_ = false;
  return defer(Deferred::Kind::kTaskEnd);
}

}  // namespace heddle::worker
