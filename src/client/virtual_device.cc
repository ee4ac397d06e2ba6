#include "client/virtual_device.h"

#include <algorithm>

#include "client/print.h"

namespace heddle::client {

using protocol::Binding;
using protocol::RecordHeader;
using protocol::RecordType;

namespace {

// Above this a session's own payloads wait for the worker instead of running further ahead: the copy then goes through
// few blocks, which stay in the cache. Only while there is a worker.
constexpr uint32_t kBlocksAhead = 16;

}  // namespace

VirtualDevice::VirtualDevice(Session& session, uint32_t index, protocol::RingMemory memory, uint64_t base,
                             uint64_t bytes, VirtualDevice* home)
    : session_(session),
      index_(index),
      home_(home),
      memory_(std::move(memory)),
      writer_(memory_),
      bulk_(memory_.bulk().size()),
      arena_(base, bytes),
      idle_(memory_.header()),
      task_(*this, index),
      promises_(memory_.header().task_totals) {
  if (session.checks_kernels()) header().checks.store(1, std::memory_order_release);
  // Slot 0 is the legacy default stream: always there, no handle of its own.
  streams.open({}, [](uint32_t, const StreamState&) { return true; });
  stream_slot(0).flags.store(protocol::kStreamLive, std::memory_order_release);
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
  const uint64_t sequence = writer_.publish();
  if (type == RecordType::kTaskEnd) last_end_ = sequence;
  return sequence;
}

Answer<uint64_t> VirtualDevice::declare(const Segment& segment, bool answer) {
  if (task_.begun()) header().task_totals.extensions.fetch_add(1, std::memory_order_relaxed);
  return session_.declare_segment(index_, segment, answer);
}

// Follows at once on the work that the program waited for before it freed the last buffer.
Done VirtualDevice::await_end() {
  session_.end_task(index_);
  return wait_until(
      [&] { return header().binding.load(std::memory_order_acquire) == static_cast<uint32_t>(Binding::kUnbound); });
}

Done VirtualDevice::begin(uint64_t serial, const protocol::ComputeNeed& need) {
  return session_.begin_task(serial, need);
}

void VirtualDevice::retire(Segment* segment, uint64_t sequence) {
  if (segment->number != 0) session_.forget_segment(segment->number);
  arena_.retire(segment, sequence);
  count_bytes();
}

Done VirtualDevice::read_failure() const {
  const auto& head = header();
  const uint32_t fault = head.fault.load(std::memory_order_acquire);
  drain_reports();
  if (fault != 0) return refuse(static_cast<cudaError_t>(fault), protocol::get_text(head.fault_text));
  const uint32_t error = head.error.load(std::memory_order_acquire);
  return refuse(error ? static_cast<cudaError_t>(error) : cudaErrorDevicesUnavailable,
                protocol::get_text(head.error_text));
}

Answer<uint64_t> VirtualDevice::reserve_bulk(Lock& lock, uint64_t bytes) {
  for (;;) {
    const uint64_t before = committed(), released = bulk_releases_.load();
    const bool serve = header().binding.load(std::memory_order_relaxed) == static_cast<uint32_t>(Binding::kBound);
    const bool too_far = serve && bulk_.blocks_in_use(before) > kBlocksAhead;
    if (!too_far) {
      if (const auto position = bulk_.reserve(bytes, before)) return *position;
    }
    HEDDLE_ANSWER(prepare(Begin::kYes));
    lock.unlock();
    const Done waited = wait_until([&] { return committed() != before || bulk_releases_.load() != released; });
    lock.lock();
    if (!waited) return tl::unexpected(waited.error());
  }
}

void VirtualDevice::release_bulk(uint64_t position, uint64_t sequence) {
  bulk_.release(position, sequence);
  ++bulk_releases_;
  protocol::ring_bell(header().to_client);  // another thread may wait for the room
}

Done VirtualDevice::start_pending() {
  const Lock lock(mutex);
  if (task_.begun() || last_work_ <= last_end_) return failure();
  return prepare(Begin::kYes);
}

Done VirtualDevice::synchronize_stream(uint32_t stream, uint64_t sequence) {
  if (!stream_reached(stream, sequence)) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = wait_until([&] { return stream_reached(stream, sequence); });
    drain_prints();
    HEDDLE_ANSWER(waited);
  }
  drain_prints();
  return failure();
}

Done VirtualDevice::synchronize() {
  uint64_t sequence;
  {
    const Lock lock(mutex);
    sequence = last_work_;
  }
  if (!reached_all(sequence)) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = wait_until([&] { return reached_all(sequence); });
    drain_prints();
    HEDDLE_ANSWER(waited);
  }
  drain_prints();
  return failure();
}

void VirtualDevice::drain_prints() {
  protocol::RingHeader& head = header();
  if (head.print_tail.load(std::memory_order_acquire) == head.print_head.load(std::memory_order_relaxed) &&
      head.report_tail.load(std::memory_order_acquire) == head.report_head.load(std::memory_order_relaxed))
    return;
  const std::lock_guard lock(print_mutex_);
  drain(memory_.print_area(), head.print_tail, head.print_head, stdout);
  drain(memory_.report_area(), head.report_tail, head.report_head, stderr);
}

void VirtualDevice::drain_reports() const {
  protocol::RingHeader& head = header();
  if (head.report_tail.load(std::memory_order_acquire) == head.report_head.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(print_mutex_);
  drain(memory_.report_area(), head.report_tail, head.report_head, stderr);
}

Answer<uint32_t> VirtualDevice::open_stream(bool non_blocking, int priority) {
  const Lock lock(mutex);
  const auto slot = streams.open({0, non_blocking, priority}, [&](uint32_t index, const StreamState& state) {
    return stream_reached(index, state.last);
  });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation, stringf("all %u streams of a device are in use", protocol::kMaxStreams));
  auto& shared = stream_slot(*slot);
  shared.priority.store(priority, std::memory_order_relaxed);
  shared.flags.store(protocol::kStreamLive | (non_blocking ? protocol::kStreamNonBlocking : 0),
                     std::memory_order_release);
  return *slot;
}

}  // namespace heddle::client
