#include "client/device_task.h"

namespace heddle::client {

using protocol::IdleTable;
using protocol::RecordHeader;
using protocol::RecordType;

Done DeviceTask::prepare(Begin begin) {
  HEDDLE_ANSWER(ring_.failure());
  resume();
  if (begin == Begin::kYes && !task_.begun()) [[unlikely]]
    HEDDLE_ANSWER(task_.begin());
  return task_.before_record();
}

Answer<uint64_t> DeviceTask::append(RecordType type, uint64_t a, uint64_t b) {
  auto record = reserve<RecordHeader>(type, 0);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->a = a;
  (*record)->b = b;
  const uint64_t sequence = ring_.publish();
  if (type == RecordType::kTaskEnd) last_end_ = sequence;
  return sequence;
}

Answer<uint64_t> DeviceTask::reserve_bulk(Lock& lock, uint64_t bytes) {
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

bool DeviceTask::rest() {
  task_.rest();
  ring_.header().idle.task.store(IdleTable::offered_task(task_.serial()), std::memory_order_seq_cst);
  if (segments_.idle().allowed()) return true;
  resume();
  return false;
}

// In whichever order, the worker takes the task and what is idle, or this does.
void DeviceTask::resume_resting() {
  uint64_t offered = IdleTable::offered_task(task_.serial());
  if (ring_.header().idle.task.compare_exchange_strong(offered, 0)) return task_.resume();
  last_end_ = ring_.last_sequence();
  std::vector<Segment*> live, ghosts;
  while (Segment* segment = segments_.idle().take_oldest()) ghosts.push_back(segment);
  segments_.retire_lost();
  segments_.arena().for_each_segment([&](Segment* segment) {
    if (segment->buffers > 0 && segment->number != 0) live.push_back(segment);
  });
  task_.was_ended(live, ghosts);
}

bool DeviceTask::begun() {
  const Lock lock = ring_.lock();
  return task_.begun();
}

Done DeviceTask::need_segment(uint64_t number) {
  const Lock lock = ring_.lock();
  resume();
  if (!task_.begun()) return {};
  auto sequence = append(RecordType::kNeed, number);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

Done DeviceTask::start_pending() {
  const Lock lock = ring_.lock();
  if (task_.begun() || ring_.last_work() <= last_end_) return ring_.failure();
  return prepare(Begin::kYes);
}

template <class IsDone>
Done DeviceTask::finish(IsDone&& is_done) {
  if (!is_done()) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = ring_.wait_until(is_done);
    ring_.drain_prints();
    HEDDLE_ANSWER(waited);
  }
  ring_.drain_prints();
  return ring_.failure();
}

Done DeviceTask::synchronize_stream(uint32_t stream, uint64_t sequence) {
  return finish([&] { return ring_.stream_reached(stream, sequence); });
}

Done DeviceTask::synchronize_event(uint32_t event, uint64_t sequence) {
  return finish([&] { return ring_.event_reached(event, sequence); });
}

Done DeviceTask::synchronize() {
  uint64_t sequence;
  {
    const Lock lock = ring_.lock();
    sequence = ring_.last_work();
  }
  return finish([&] { return ring_.reached(sequence); });
}

// Follows at once on the work that the program waited for before it freed the last buffer.
Done DeviceTask::await_end() {
  ring_.session().end_task(ring_.index());
  return ring_.wait_until([&] { return ring_.is_bound_to(protocol::Binding::kUnbound); });
}

Answer<uint64_t> DeviceTask::declare(const Segment& segment, bool answer) {
  if (task_.begun()) ring_.header().task_totals.extensions.fetch_add(1, std::memory_order_relaxed);
  return ring_.session().declare_segment(ring_.index(), segment, answer);
}

Done DeviceTask::begin(uint64_t serial, const protocol::ComputeNeed& need) {
  return ring_.session().begin_task(serial, need);
}

Done DeviceTask::grow(const protocol::ComputeNeed& need) {
  return ring_.session().grow_task(need);
}

void DeviceTask::withdrawn(const Segment& segment) {
  ring_.session().forget_segment(segment.number);
}

}  // namespace heddle::client
