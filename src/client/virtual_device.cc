#include "client/virtual_device.h"

namespace heddle::client {

using protocol::RecordHeader;
using protocol::RecordType;

VirtualDevice::VirtualDevice(Session& session, uint32_t index, protocol::RingMemory memory, uint64_t base,
                             uint64_t bytes, VirtualDevice* home)
    : ring_(session, index, std::move(memory), home ? &home->ring_ : nullptr),
      home_(home),
      arena_(base, bytes),
      idle_(ring_.header()),
      task_(*this, index),
      promises_(ring_.header().task_totals) {
  if (session.checks_kernels()) ring_.header().checks.store(1, std::memory_order_release);
  // Slot 0 is the legacy default stream: always there, no handle of its own.
  streams.open({}, [](uint32_t, const StreamState&) { return true; });
  ring_.stream_slot(0).flags.store(protocol::kStreamLive, std::memory_order_release);
}

Done VirtualDevice::prepare(Begin begin) {
  HEDDLE_ANSWER(failure());
  resume();
  if (begin == Begin::kYes && !task_.begun()) [[unlikely]]
    HEDDLE_ANSWER(task_.begin());
  return task_.before_record();
}

Answer<uint64_t> VirtualDevice::append_plain(RecordType type, uint32_t stream, uint64_t a, uint64_t b) {
  auto record = reserve<RecordHeader>(type, stream);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->a = a;
  (*record)->b = b;
  return publish(stream);
}

Answer<uint64_t> VirtualDevice::append(RecordType type, uint64_t a, uint64_t b) {
  auto record = reserve<RecordHeader>(type, 0);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->a = a;
  (*record)->b = b;
  const uint64_t sequence = ring_.publish();
  if (type == RecordType::kTaskEnd) last_end_ = sequence;
  return sequence;
}

Answer<uint64_t> VirtualDevice::declare(const Segment& segment, bool answer) {
  if (task_.begun()) ring_.header().task_totals.extensions.fetch_add(1, std::memory_order_relaxed);
  return session().declare_segment(index(), segment, answer);
}

// Follows at once on the work that the program waited for before it freed the last buffer.
Done VirtualDevice::await_end() {
  session().end_task(index());
  return ring_.wait_until([&] { return ring_.is_bound_to(protocol::Binding::kUnbound); });
}

Done VirtualDevice::begin(uint64_t serial, const protocol::ComputeNeed& need) {
  return session().begin_task(serial, need);
}

void VirtualDevice::retire(Segment* segment, uint64_t sequence) {
  if (segment->number != 0) session().forget_segment(segment->number);
  arena_.retire(segment, sequence);
  count_bytes();
}

Answer<uint64_t> VirtualDevice::reserve_bulk(Lock& lock, uint64_t bytes) {
  for (;;) {
    const RingPort::BulkState before = ring_.bulk_state();
    if (const auto position = ring_.reserve_bulk_near(bytes)) return *position;
    HEDDLE_ANSWER(prepare(Begin::kYes));
    lock.unlock();
    const Done waited = ring_.wait_until([&] { return ring_.bulk_state() != before; });
    lock.lock();
    if (!waited) return tl::unexpected(waited.error());
  }
}

Done VirtualDevice::start_pending() {
  const Lock lock = ring_.lock();
  if (task_.begun() || ring_.last_work() <= last_end_) return failure();
  return prepare(Begin::kYes);
}

Done VirtualDevice::synchronize_stream(uint32_t stream, uint64_t sequence) {
  if (!ring_.stream_reached(stream, sequence)) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = ring_.wait_until([&] { return ring_.stream_reached(stream, sequence); });
    ring_.drain_prints();
    HEDDLE_ANSWER(waited);
  }
  ring_.drain_prints();
  return failure();
}

Done VirtualDevice::synchronize() {
  uint64_t sequence;
  {
    const Lock lock = ring_.lock();
    sequence = ring_.last_work();
  }
  if (!ring_.reached(sequence)) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = ring_.wait_until([&] { return ring_.reached(sequence); });
    ring_.drain_prints();
    HEDDLE_ANSWER(waited);
  }
  ring_.drain_prints();
  return failure();
}

Answer<uint32_t> VirtualDevice::open_stream(bool non_blocking, int priority) {
  const Lock lock = ring_.lock();
  const auto slot = streams.open({0, non_blocking, priority}, [&](uint32_t index, const StreamState& state) {
    return ring_.stream_reached(index, state.last);
  });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation, stringf("all %u streams of a device are in use", protocol::kMaxStreams));
  auto& shared = ring_.stream_slot(*slot);
  shared.priority.store(priority, std::memory_order_relaxed);
  shared.flags.store(protocol::kStreamLive | (non_blocking ? protocol::kStreamNonBlocking : 0),
                     std::memory_order_release);
  return *slot;
}

}  // namespace heddle::client
