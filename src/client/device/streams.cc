#include "client/device/streams.h"

namespace heddle::client {

using Lock = RingPort::Lock;

Streams::Streams(RingPort& ring) : ring_(ring) {
  table_.open({}, [](uint32_t, const StreamState&) { return true; });
  ring_.stream_slot(0).flags.store(protocol::kStreamLive, std::memory_order_release);
}

Answer<uint32_t> Streams::open(bool non_blocking, int priority) {
  const Lock lock = ring_.lock();
  const auto slot = table_.open({0, non_blocking, priority}, [&](uint32_t index, const StreamState& state) {
    return ring_.stream_seen(index, state.last);
  });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation, stringf("all %u streams of a device are in use", protocol::kMaxStreams));
  auto& shared = ring_.stream_slot(*slot);
  shared.priority.store(priority, std::memory_order_relaxed);
  shared.flags.store(protocol::kStreamLive | (non_blocking ? protocol::kStreamNonBlocking : 0),
                     std::memory_order_release);
  return *slot;
}

void Streams::close(uint32_t slot) {
  const Lock lock = ring_.lock();
  table_.close(slot);
}

uint64_t Streams::handle(uint32_t slot) {
  const Lock lock = ring_.lock();
  return table_.handle(ring_.index(), slot);
}

std::optional<uint32_t> Streams::find(const Handle& handle) {
  const Lock lock = ring_.lock();
  return table_.find(handle);
}

StreamState Streams::state(uint32_t slot) {
  const Lock lock = ring_.lock();
  return table_.at(slot);
}

void Streams::set_priority(uint32_t slot, int priority) {
  const Lock lock = ring_.lock();
  table_.at(slot).priority = priority;
  ring_.stream_slot(slot).priority.store(priority, std::memory_order_release);
}

Answer<uint64_t> Events::open(unsigned flags) {
  const Lock lock = ring_.lock();
  const auto slot =
      table_.open({0, flags}, [&](uint32_t i, const EventState& state) { return ring_.event_seen(i, state.last); });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation, stringf("all %u events of a device are in use", protocol::kMaxEvents));
  return table_.handle(ring_.index(), *slot);
}

void Events::close(uint32_t slot) {
  const Lock lock = ring_.lock();
  table_.close(slot);
}

std::optional<Events::Found> Events::find(const Handle& handle) {
  const Lock lock = ring_.lock();
  const auto slot = table_.find(handle);
  return slot ? std::optional(Found{*slot, table_.at(*slot)}) : std::nullopt;
}

}  // namespace heddle::client
