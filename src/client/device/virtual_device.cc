#include "client/device/virtual_device.h"

#include "client/thread_place.h"

namespace heddle::client {

using protocol::RecordType;

VirtualDevice::VirtualDevice(Session& session, uint32_t index, protocol::RingMemory memory, uint64_t base,
                             uint64_t bytes, VirtualDevice* home)
    : home_(home),
      ring_(session, index, std::move(memory), home ? &home->ring_ : nullptr),
      segments_(ring_, base, bytes, home ? &home->segments_ : nullptr),
      task_(ring_, segments_),
      memory_(ring_, segments_, task_),
      streams_(ring_),
      events_(ring_),
      textures_(ring_, segments_, task_),
      limits_(ring_, task_),
      host_calls_(ring_),
      side_devices_(ring_, streams_),
      recent_launches_(ring_) {
  if (session.checks_kernels()) ring_.header().checks.store(1, std::memory_order_release);
  ring_.join_group();
}

Answer<uint32_t> VirtualDevice::open_stream(bool non_blocking, int priority) {
  uint64_t open;  // with the new one, but for the default stream
  {
    const Lock lock = ring_.lock();
    open = streams_.open_count();
  }
  HEDDLE_ANSWER(memory_.charge_driver(DriverCharges::Part::kStreams, 0, open * DriverCharges::kStreamBytes, "streams"));
  return streams_.open(non_blocking, priority);
}

Answer<uint64_t> VirtualDevice::append_plain(RecordType type, uint32_t stream, uint64_t a, uint64_t b) {
  auto record = reserve<protocol::RecordHeader>(type, stream);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->a = a;
  (*record)->b = b;
  return publish(stream);
}

void VirtualDevice::published_meanwhile(uint32_t stream, uint64_t sequence) {
  if (stream == 0 && thread_place().inside != this) side_devices_.published_outside(sequence);
}

Done VirtualDevice::synchronize_with_side_devices() {
  HEDDLE_ANSWER(synchronize());
  Done all;
  side_devices_.for_each([&](VirtualDevice& side) {
    if (all) all = side.synchronize();
  });
  return all;
}

// What kernels allocated is gone, too: a worker that holds any of it goes.
Done VirtualDevice::reset() {
  HEDDLE_ANSWER(memory_.release_all());
  const Lock lock = ring_.lock();
  const bool rested = task_.lazy().resting();
  task_.resume();
  HEDDLE_ANSWER(limits_.reset());
  const bool pinned = task_.worker_pinned();
  task_.unpin_worker();
  if (!task_.lazy().begun() || (!pinned && !rested)) return {};
  HEDDLE_ANSWER(memory_.return_idle(0));
  if (pinned) HEDDLE_ANSWER(task_.append(RecordType::kReset, 0, 0));
  return task_.all_freed();
}

Answer<bool> VirtualDevice::begin_apart(VirtualDevice& side) {
  const Lock lock = ring_.lock(), side_lock = side.lock();
  return task_.begin_apart(side.task_);
}

}  // namespace heddle::client
