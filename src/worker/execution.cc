#include "worker/execution.h"

#include <cstring>
#include <optional>

namespace heddle::worker {

using protocol::RecordType;

namespace {

std::optional<device::Limit> limit_of(protocol::LimitKind kind) {
  switch (kind) {
    case protocol::LimitKind::kStackBytes:
      return device::Limit::kStackBytes;
    case protocol::LimitKind::kHeapBytes:
      return device::Limit::kHeapBytes;
    case protocol::LimitKind::kPendingLaunches:
      return device::Limit::kPendingLaunches;
  }
  return std::nullopt;
}

bool has_effects(RecordType type) {
  return type == RecordType::kLaunch || type == RecordType::kCopy || type == RecordType::kFill ||
         type == RecordType::kLibraryCall;
}

}  // namespace

Execution::Execution(const SessionParts& parts, Modules& modules, const DeviceModel& model,
                     const protocol::Window& window)
    : parts_(parts),
      modules_(modules),
      model_(model),
      bounds_{&parts.ring, window},
      seen_until_(parts.progress.shown()),
      streams_(parts.context, parts.ring, parts.progress),
      textures_(parts.context, parts.ring) {}

Checked<void> Execution::restore() {
  const protocol::RingHeader& header = parts_.ring.header();
  auto restored = textures_.restore(parts_.progress.completed());
  const uint64_t stack = header.stack_bytes.load(std::memory_order_acquire);
  const uint64_t heap = header.heap_bytes.load(std::memory_order_acquire);
  if (restored && stack) restored = set_limit(device::Limit::kStackBytes, stack);
  const uint64_t launches = header.pending_launches.load(std::memory_order_acquire);
  if (restored && heap) restored = set_limit(device::Limit::kHeapBytes, heap);
  if (restored && launches) restored = set_limit(device::Limit::kPendingLaunches, launches);
  return restored;
}

Checked<Execution::Step> Execution::execute(const protocol::Record& record) {
  switch (record.header.type) {
    case RecordType::kLaunch:
      return launch(record);
    case RecordType::kCopy:
      return copy(record);
    case RecordType::kFill:
      return fill(record);
    case RecordType::kEventRecord:
      return record_event(record);
    case RecordType::kMarker:
      return in_turn(record);
    case RecordType::kEventWait:
      return wait_for_event(record);
    case RecordType::kSymbol:
      return symbol(record);
    case RecordType::kPrefetchModule:
      return prefetch(record);
    case RecordType::kTexture:
    case RecordType::kTextureGone:
      return texture(record);
    case RecordType::kLimit:
      return limit(record);
    case RecordType::kLibraryOpen:
      return open_library(record);
    case RecordType::kLibraryCall:
      return call_library(record);
    default:
      return malformed("record type %u does not exist", static_cast<unsigned>(record.header.type));
  }
}

Execution::Step Execution::here(const protocol::Record& record) {
  parts_.progress.enter(record);
  parts_.progress.finish(record.header.sequence);
  return Step::kTaken;
}

template <class Call>
Checked<Execution::Step> Execution::hand_over(const protocol::Record& record, const char* what, uint64_t bytes,
                                              Call&& call) {
  const uint64_t sequence = record.header.sequence;
  const auto prepared = streams_.prepare(record.header.stream);
  if (!prepared) return tl::unexpected(refusal_of("stream", prepared.error()));
  if (has_effects(record.header.type)) parts_.commit.hands_over(sequence);
  parts_.progress.enter(record, bytes, parts_.long_work.timed(sequence));
  parts_.progress.hand_over(sequence, parts_.epoch.is_unprotected(sequence));
  parts_.usage.hand_over(record.header.type);
  const bool apart = parts_.long_work.is_timed_apart(sequence);
  if (apart) parts_.context.fence();
  parts_.reports.look();
  const Status status = call(record.header.stream, sequence);
  if (status && apart) parts_.context.fence();
  if (status) return Step::kTaken;
  parts_.usage.take_back(record.header.type);
  parts_.progress.take_back(sequence);
  return tl::unexpected(refusal_of(what, status.error()));
}

template <class Effects>
Checked<Execution::Step> Execution::prepare(const protocol::Record& record, Effects&& effects) {
  const auto prepared = streams_.prepare(record.header.stream);
  if (!prepared) return tl::unexpected(refusal_of("stream", prepared.error()));
  const auto step = parts_.epoch.before(record, effects);
  if (!step) return tl::unexpected(step.error());
  return *step == Epoch::Step::kGo ? Step::kTaken : Step::kWait;
}

Checked<Execution::Step> Execution::in_turn(const protocol::Record& record) {
  const auto prepared = streams_.prepare(record.header.stream);
  if (!prepared) return tl::unexpected(refusal_of("stream", prepared.error()));
  if (streams_.has_turn(record.header.stream, record.header.sequence)) return here(record);
  return hand_over(record, "marker", 0,
                   [this](uint32_t stream, device::Tag tag) { return parts_.context.mark(stream, tag); });
}

Checked<Execution::Step> Execution::hold(const protocol::Record& record) {
  return hand_over(record, "host call", 0,
                   [this](uint32_t stream, device::Tag tag) { return parts_.context.hold(stream, tag); });
}

Checked<Execution::Step> Execution::record_event(const protocol::Record& record) {
  const auto valid = check_event(record.header);
  if (!valid) return tl::unexpected(valid.error());
  return in_turn(record);
}

Checked<Execution::Step> Execution::launch(const protocol::Record& record) {
  const auto launched = record.as<protocol::LaunchRecord>();
  if (launched.module == 0) return malformed("a launch names module 0");
  if (!modules_.known(launched.module)) return Step::kWait;
  const auto target = modules_.kernel(launched.module, launched.kernel);
  if (!target) return tl::unexpected(target.error());
  const auto config = check_launch(launched, record.trailing<protocol::LaunchRecord>(), *target->info, model_);
  if (!config) return tl::unexpected(config.error());
  if (keeps_back(record, parts_.variables.would_obstruct(target->traits))) return Step::kWait;
  auto ready = prepare(
      record, [&](const Regions& regions) { return effects_of_launch(*target->use, config->parameters, regions); });
  if (!ready || *ready == Step::kWait) return ready;
  parts_.variables.about_to_launch(record.header.sequence, target->traits);
  return hand_over(record, "launch", 0, [&](uint32_t stream, device::Tag tag) {
    return parts_.context.launch(stream, *target->kernel, *config, tag);
  });
}

// What is wrong with the record is said when it is executed.
Duration Execution::time_on_host(const protocol::Record& record, const HostPart& part) {
  if (record.header.type != RecordType::kLaunch) return {};
  const auto launched = record.as<protocol::LaunchRecord>();
  if (launched.module == 0 || !modules_.known(launched.module)) return {};
  const auto target = modules_.kernel(launched.module, launched.kernel);
  if (!target || !target->use) return {};
  const auto config = check_launch(launched, record.trailing<protocol::LaunchRecord>(), *target->info, model_);
  return config ? part.time_of(*target->use, config->parameters, model_) : Duration{};
}

Checked<bool> Execution::find_variable(const protocol::CopyEnd& end, device::Variable& variable) {
  if (end.place != protocol::Place::kSymbol) return true;
  if (end.module == 0) return malformed("a copy names module 0");
  if (!modules_.known(end.module)) return false;
  const auto found = modules_.variable(end.module, end.index);
  if (!found) return tl::unexpected(found.error());
  variable = *found;
  return true;
}

// Of a guarded worker: no other could go on in its place behind a record that obstructs that.
bool Execution::keeps_back(const protocol::Record& record, bool obstructs) {
  return obstructs && parts_.epoch.keeps_back(record.header.sequence);
}

Checked<Execution::Step> Execution::copy(const protocol::Record& record) {
  const auto asked = record.as<protocol::CopyRecord>();
  // The program has seen it, and may have something else there now.
  if (record.header.sequence <= seen_until_ && ends_at_program(asked, bounds_.window)) return here(record);
  device::Variable to, from;
  for (const auto& [end, variable] : {std::pair(&asked.to, &to), std::pair(&asked.from, &from)}) {
    const auto found = find_variable(*end, *variable);
    if (!found) return tl::unexpected(found.error());
    if (!*found) return Step::kWait;
  }
  const auto checked = check_copy(asked, bounds_, to, from);
  if (!checked) return tl::unexpected(checked.error());
  if (checked->bytes == 0) return in_turn(record);
  const bool writes_variable = asked.to.place == protocol::Place::kSymbol;
  if (keeps_back(record, writes_variable && parts_.variables.would_obstruct(true))) return Step::kWait;
  auto ready = prepare(record, [&](const Regions& regions) { return effects_of_copy(*checked, regions); });
  if (!ready || *ready == Step::kWait) return ready;
  if (writes_variable) parts_.variables.about_to_run(record.header.sequence, true);
  return hand_over(record, "copy", checked->bytes, [&](uint32_t stream, device::Tag tag) {
    return parts_.context.copy(stream, checked->direction, checked->shape, tag);
  });
}

Checked<Execution::Step> Execution::fill(const protocol::Record& record) {
  const auto asked = record.as<protocol::FillRecord>();
  device::Variable to;
  const auto found = find_variable(asked.to, to);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return Step::kWait;
  const auto checked = check_fill(asked, bounds_, to);
  if (!checked) return tl::unexpected(checked.error());
  if (checked->bytes == 0) return in_turn(record);
  const bool writes_variable = asked.to.place == protocol::Place::kSymbol;
  if (keeps_back(record, writes_variable && parts_.variables.would_obstruct(true))) return Step::kWait;
  auto ready = prepare(record, [&](const Regions& regions) { return effects_of_fill(*checked, regions); });
  if (!ready || *ready == Step::kWait) return ready;
  if (writes_variable) parts_.variables.about_to_run(record.header.sequence, true);
  return hand_over(record, "fill", checked->bytes,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.fill(stream, checked->shape, tag); });
}

Checked<Execution::Step> Execution::wait_for_event(const protocol::Record& record) {
  const uint64_t awaited = record.header.b;
  const auto valid = check_event(record.header);
  if (!valid) return tl::unexpected(valid.error());
  if (parts_.progress.done(awaited)) return in_turn(record);
  // Something that the device knows nothing of (a free): we are woken when it is done.
  if (!parts_.progress.pending(awaited).on_device) return Step::kWait;
  return hand_over(record, "event wait", 0,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.wait(stream, awaited, tag); });
}

Checked<Execution::Step> Execution::symbol(const protocol::Record& record) {
  const auto asked = record.as<protocol::SymbolRecord>();
  const auto place = check_symbol(asked, bounds_);
  if (!place) return tl::unexpected(place.error());
  if (asked.module == 0) return malformed("a symbol of module 0");
  if (!modules_.known(asked.module)) return Step::kWait;
  const auto variable = modules_.variable(asked.module, asked.index);
  if (!variable) return tl::unexpected(variable.error());
  if (keeps_back(record, parts_.variables.address_would_obstruct())) return Step::kWait;
  parts_.variables.note_modules();  // the program learns where it is
  parts_.variables.tell_addresses();
  const uint64_t answer[2] = {variable->address, variable->bytes};
  std::memcpy(place->data(), answer, sizeof answer);
  return here(record);
}

Checked<Execution::Step> Execution::prefetch(const protocol::Record& record) {
  const uint64_t id = record.header.a;
  if (id == 0 || id > UINT32_MAX) return malformed("module %lu cannot be", static_cast<unsigned long>(id));
  if (!modules_.known(static_cast<uint32_t>(id))) return Step::kWait;
  const auto loaded = modules_.load(static_cast<uint32_t>(id));
  if (!loaded) return tl::unexpected(loaded.error());
  return here(record);
}

Checked<Execution::Step> Execution::texture(const protocol::Record& record) {
  const protocol::RecordHeader& header = record.header;
  const bool created = header.type == RecordType::kTexture;
  const auto changed = created ? textures_.created(header.a) : textures_.gone(header.a);
  if (!changed) return tl::unexpected(changed.error());
  return here(record);
}

Checked<Execution::Step> Execution::limit(const protocol::Record& record) {
  const protocol::RecordHeader& header = record.header;
  const auto which = limit_of(static_cast<protocol::LimitKind>(header.a));
  if (!which) return malformed("limit %lu does not exist", static_cast<unsigned long>(header.a));
  const auto set = set_limit(*which, header.b);
  if (!set) return tl::unexpected(set.error());
  return here(record);
}

Checked<void> Execution::set_limit(device::Limit limit, uint64_t bytes) {
  const Status set = parts_.context.set_limit(limit, bytes);
  if (set) return {};
  return tl::unexpected(refusal_of("limit", set.error()));
}

// A library that cannot be had is the program's to deal with: no fault.
Checked<Execution::Step> Execution::open_library(const protocol::Record& record) {
  const auto asked = record.as<protocol::LibraryOpenRecord>();
  const auto place = check_library_open(asked, bounds_);
  if (!place) return tl::unexpected(place.error());
  const auto version = parts_.context.open_library(static_cast<library::Library>(asked.library));
  protocol::LibraryOpened answer{};
  if (version) answer.version = *version;
  if (!version) {
    const Refusal refusal = refusal_of(library::name_of(static_cast<library::Library>(asked.library)), version.error());
    answer.cuda_error = refusal.cuda_error;
    refusal.text.copy(answer.text, sizeof answer.text - 1);
  }
  std::memcpy(place->data(), &answer, sizeof answer);
  return here(record);
}

Checked<Execution::Step> Execution::call_library(const protocol::Record& record) {
  const auto asked = record.as<protocol::LibraryCallRecord>();
  const auto call = check_library_call(asked, record.trailing<protocol::LibraryCallRecord>());
  if (!call) return tl::unexpected(call.error());
  if (keeps_back(record, parts_.variables.would_obstruct(false))) return Step::kWait;
  auto ready = prepare(record, [&](const Regions& regions) { return effects_of_call(call->call(), regions); });
  if (!ready || *ready == Step::kWait) return ready;
  parts_.variables.about_to_run(record.header.sequence);
  return hand_over(record, library::name_of(call->call()), 0,
                   [&](uint32_t stream, device::Tag tag) { return parts_.context.call(stream, call->call(), tag); });
}

}  // namespace heddle::worker
