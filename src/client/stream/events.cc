#include "client/stream/events.h"

#include "client/stream/enqueue.h"

namespace heddle::client {
namespace {

Done wait_across(const StreamRef& stream, const EventRef& event) {
  HEDDLE_ANSWER(event.device->start_pending());
  VirtualDevice* const there = event.device;
  const uint32_t slot = event.slot;
  const uint64_t until = event.state.last;
  const uint32_t on = event.state.stream;
  return enqueue_wait_until(stream, VirtualDevice::Begin::kYes,
                            [=] { return there->ring().event_reached(slot, on, until) || !there->failure(); });
}

}  // namespace

Answer<EventRef> resolve_event(cudaEvent_t event) {
  const auto handle = Handle::parse(kEventTag, reinterpret_cast<uintptr_t>(event));
  if (!handle) return refuse(cudaErrorInvalidResourceHandle);
  auto device = runtime().device(static_cast<int>(handle->device));
  if (!device) return refuse(cudaErrorInvalidResourceHandle);
  const auto found = (*device)->events().find(*handle);
  if (!found) return refuse(cudaErrorInvalidResourceHandle);
  return EventRef{*device, found->slot, found->state};
}

Done record_event(const EventRef& event, const StreamRef& stream) {
  if (stream.device != event.device) return refuse(cudaErrorInvalidResourceHandle);
  const VirtualDevice::Lock lock = event.device->lock();
  HEDDLE_ANSWER(event.device->prepare(VirtualDevice::Begin::kNo));
  auto sequence = event.device->append_plain(protocol::RecordType::kEventRecord, stream.slot, event.slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  event.device->events().recorded(event.slot, stream.slot, *sequence);
  return {};
}

Done wait_for_event(const StreamRef& stream, const EventRef& event) {
  HEDDLE_ANSWER(stream.device->failure());
  if (event.device->ring().event_reached(event.slot, event.state.stream, event.state.last)) return {};
  if (event.device != stream.device) return wait_across(stream, event);
  return enqueue_wait(stream, event.state.last, event.slot);
}

}  // namespace heddle::client
