// Events.

#include "client/api/submit.h"
#include "client/context.h"
#include "client/memory/memory_pool.h"

namespace heddle::client {
namespace {

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
  auto handle = (*device)->events().open(flags);
  if (!handle) return tl::unexpected(std::move(handle).error());
  *event = reinterpret_cast<cudaEvent_t>(*handle);
  return {};
}

// Neither of an event that was captured nor, where the thread may not, of any other may one ask.
Done check_capture(cudaEvent_t event) {
  HEDDLE_ANSWER(captures().check_event(event));
  return captures().check_unsafe();
}

Done query(const EventRef& ref) {
  HEDDLE_ANSWER(ref.device->failure());
  if (ref.device->ring().event_reached(ref.slot, ref.state.stream, ref.state.last)) return {};
  HEDDLE_ANSWER(ref.device->start_pending());
  HEDDLE_ANSWER(ref.device->session().look());
  return refuse(cudaErrorNotReady);
}

Done elapsed(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!milliseconds) return refuse(cudaErrorInvalidValue);
  for (cudaEvent_t event : {start, end}) HEDDLE_ANSWER(captures().check_event(event));
  auto from = resolve_event(start), to = resolve_event(end);
  if (!from) return tl::unexpected(std::move(from).error());
  if (!to) return tl::unexpected(std::move(to).error());
  if (((from->state.flags | to->state.flags) & cudaEventDisableTiming) || from->state.last == 0 || to->state.last == 0)
    return refuse(cudaErrorInvalidResourceHandle);
  for (const auto& event : {*from, *to}) {
    HEDDLE_ANSWER(query(event));
    HEDDLE_ANSWER(event.device->task().await_time(event.slot, event.state.last));
  }
  const auto nanoseconds =
      static_cast<int64_t>(to->device->ring().event_time(to->slot) - from->device->ring().event_time(from->slot));
  *milliseconds = static_cast<float>(static_cast<double>(nanoseconds) * 1e-6);
  return {};
}

Done record(cudaEvent_t event, cudaStream_t stream, bool external) {
  auto ref = resolve_event(event);
  if (!ref) return tl::unexpected(std::move(ref).error());
  auto on = enter_stream(stream);
  if (!on) return tl::unexpected(std::move(on).error());
  if (on->device != ref->device) return refuse(cudaErrorInvalidResourceHandle);
  auto captured = captures().record(event, *on, external);
  if (!captured) return tl::unexpected(std::move(captured).error());
  return *captured ? Done{} : record_event(*ref, *on);
}

Done wait(cudaStream_t stream, cudaEvent_t event, bool external) {
  auto ref = resolve_event(event);
  if (!ref) return tl::unexpected(std::move(ref).error());
  auto waiting = enter_stream(stream);
  if (!waiting) return tl::unexpected(std::move(waiting).error());
  auto captured = captures().wait(*waiting, event, *ref, external);
  if (!captured) return tl::unexpected(std::move(captured).error());
  return *captured ? Done{} : wait_for_event(*waiting, *ref);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return answer([&] { return create(event, 0); });
}

HEDDLE_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return answer([&] { return create(event, flags); });
}

HEDDLE_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return on_event(event, [event](const EventRef& ref) -> Done {
    captures().forget_event(event);
    ref.device->events().close(ref.slot);
    disown(Owned::kEvent, reinterpret_cast<uint64_t>(event));
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer([&] { return record(event, stream, false); });
}

HEDDLE_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return answer([&]() -> Done {
    if (flags & ~cudaEventRecordExternal) return refuse(cudaErrorInvalidValue);
    return record(event, stream, flags != 0);
  });
}

HEDDLE_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
  return on_event(event, [event](const EventRef& ref) -> Done {
    HEDDLE_ANSWER(check_capture(event));
    return query(ref);
  });
}

HEDDLE_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return on_event(event, [event](const EventRef& ref) -> Done {
    HEDDLE_ANSWER(check_capture(event));
    const WaitMode mode = ref.state.flags & cudaEventBlockingSync ? WaitMode::kBlock : wait_mode().load();
    HEDDLE_ANSWER(ref.device->task().synchronize_event(ref.slot, ref.state.stream, ref.state.last, mode));
    memory_pools().synchronized(*ref.device);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return answer([&] { return elapsed(milliseconds, start, end); });
}

HEDDLE_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return answer([&]() -> Done {
    if (flags & ~cudaEventWaitExternal) return refuse(cudaErrorInvalidValue);
    return wait(stream, event, flags != 0);
  });
}

}  // namespace heddle::client
