// Events.

#include "client/stream_ref.h"

namespace heddle::client {
namespace {

struct EventRef {
  VirtualDevice* device;
  uint32_t slot;
  EventState state;
};

Answer<EventRef> resolve_event(cudaEvent_t event) {
  const auto handle = Handle::parse(kEventTag, reinterpret_cast<uintptr_t>(event));
  if (!handle) return refuse(cudaErrorInvalidResourceHandle);
  auto device = runtime().device(static_cast<int>(handle->device));
  if (!device) return refuse(cudaErrorInvalidResourceHandle);
  const VirtualDevice::Lock lock((*device)->mutex);
  if (!(*device)->events.valid(*handle)) return refuse(cudaErrorInvalidResourceHandle);
  return EventRef{*device, handle->slot, (*device)->events.at(handle->slot)};
}

template <class Body>
cudaError_t on_event(cudaEvent_t event, Body&& body) {
  return answer([&]() -> Done {
    auto resolved = resolve_event(event);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    return body(*resolved);
  });
}

Done create(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
  if (!event || (flags & ~(kKnown | cudaEventInterprocess))) return refuse(cudaErrorInvalidValue);
  if (flags & cudaEventInterprocess)
    return refuse(cudaErrorNotSupported, "events shared between processes are not supported");
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  HEDDLE_ANSWER((*device)->failure());
  const VirtualDevice::Lock lock((*device)->mutex);
  const auto slot = (*device)->events.open(
      {0, flags}, [&](uint32_t i, const EventState& state) { return (*device)->event_reached(i, state.last); });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation, stringf("all %u events of a device are in use", protocol::kMaxEvents));
  *event = reinterpret_cast<cudaEvent_t>((*device)->events.handle((*device)->index(), *slot));
  return {};
}

Done record(cudaEvent_t event, cudaStream_t stream) {
  auto ref = resolve_event(event);
  if (!ref) return tl::unexpected(std::move(ref).error());
  auto on = resolve_stream(stream);
  if (!on) return tl::unexpected(std::move(on).error());
  if (on->device != ref->device) return refuse(cudaErrorInvalidResourceHandle);
  const VirtualDevice::Lock lock(ref->device->mutex);
  HEDDLE_ANSWER(ref->device->prepare(VirtualDevice::Begin::kNo));
  auto sequence = ref->device->append_plain(protocol::RecordType::kEventRecord, on->slot, ref->slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  ref->device->events.at(ref->slot).last = *sequence;
  return {};
}

Done query(const EventRef& ref) {
  HEDDLE_ANSWER(ref.device->failure());
  if (ref.device->event_reached(ref.slot, ref.state.last)) return {};
  HEDDLE_ANSWER(ref.device->start_pending());
  HEDDLE_ANSWER(ref.device->session().look());
  return refuse(cudaErrorNotReady);
}

Done synchronize(const EventRef& ref) {
  if (!ref.device->event_reached(ref.slot, ref.state.last)) {
    HEDDLE_ANSWER(ref.device->start_pending());
    const Done waited = ref.device->wait_until([&] { return ref.device->event_reached(ref.slot, ref.state.last); });
    ref.device->drain_prints();
    HEDDLE_ANSWER(waited);
  }
  ref.device->drain_prints();
  return ref.device->failure();
}

Done elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!milliseconds) return refuse(cudaErrorInvalidValue);
  auto from = resolve_event(start), to = resolve_event(end);
  if (!from) return tl::unexpected(std::move(from).error());
  if (!to) return tl::unexpected(std::move(to).error());
  if (((from->state.flags | to->state.flags) & cudaEventDisableTiming) || from->state.last == 0 || to->state.last == 0)
    return refuse(cudaErrorInvalidResourceHandle);
  HEDDLE_ANSWER(query(*from));
  HEDDLE_ANSWER(query(*to));
  const auto nanoseconds =
      static_cast<int64_t>(to->device->event_time(to->slot) - from->device->event_time(from->slot));
  *milliseconds = static_cast<float>(static_cast<double>(nanoseconds) * 1e-6);
  return {};
}

// Another device's ring cannot be waited for by a worker: the stream calls back here, and goes on when the event is
// reached there.
Done wait_across(const StreamRef& stream, const EventRef& event) {
  HEDDLE_ANSWER(event.device->start_pending());
  VirtualDevice& device = *stream.device;
  const VirtualDevice::Lock lock(device.mutex);
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kYes));
  auto sequence = device.append_plain(protocol::RecordType::kHostCall, stream.slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  VirtualDevice* const there = event.device;
  const uint32_t slot = event.slot;
  const uint64_t until = event.state.last;
  device.host_calls.add(
      device, stream.slot,
      {*sequence, [](cudaError_t) {}, [=] { return there->event_reached(slot, until) || !there->failure(); }});
  return {};
}

Done wait(cudaStream_t stream, cudaEvent_t event) {
  auto ref = resolve_event(event);
  if (!ref) return tl::unexpected(std::move(ref).error());
  auto waiting = resolve_stream(stream);
  if (!waiting) return tl::unexpected(std::move(waiting).error());
  HEDDLE_ANSWER(waiting->device->failure());
  if (ref->device->event_reached(ref->slot, ref->state.last)) return {};
  if (ref->device != waiting->device) return wait_across(*waiting, *ref);
  const VirtualDevice::Lock lock(ref->device->mutex);
  HEDDLE_ANSWER(ref->device->prepare(VirtualDevice::Begin::kNo));
  auto sequence =
      ref->device->append_plain(protocol::RecordType::kEventWait, waiting->slot, ref->slot, ref->state.last);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return answer([&] { return create(event, 0); });
}

HEDDLE_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer([&] { return create(event, flags); });
}

HEDDLE_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return on_event(event, [](const EventRef& ref) -> Done {
    const VirtualDevice::Lock lock(ref.device->mutex);
    ref.device->events.close(ref.slot);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] { return record(event, stream); });
}

HEDDLE_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return answer([&]() -> Done { return flags == 0 ? record(event, stream) : refuse(cudaErrorInvalidValue); });
}

HEDDLE_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  return on_event(event, query);
}

HEDDLE_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return on_event(event, synchronize);
}

HEDDLE_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return answer([&] { return elapsed(milliseconds, start, end); });
}

HEDDLE_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return answer([&]() -> Done { return flags == 0 ? wait(stream, event) : refuse(cudaErrorInvalidValue); });
}

}  // namespace heddle::client
