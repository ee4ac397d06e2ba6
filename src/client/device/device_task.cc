#include "client/device/device_task.h"

namespace heddle::client {

using protocol::IdleTable;
using protocol::RecordHeader;
using protocol::RecordType;

Done DeviceTask::prepare(Begin begin) {
  HEDDLE_ANSWER(ring_.failure());
  resume();
  if (begin == Begin::kYes && !task_.begun()) [[unlikely]]
    HEDDLE_ANSWER(done(task_.begin()));
  return done(task_.before_record());
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
    if (const auto position = ring_.reserve_bulk_paced(bytes)) return *position;
    HEDDLE_ANSWER(prepare(Begin::kYes));
    lock.unlock();
    const Done waited = wait_for_commit(ring_, [&] { return ring_.bulk_state() != before; });
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
  auto record = reserve<RecordHeader>(RecordType::kNeed, 0);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->a = number;
  (*record)->b = 0;
  // Waited for like work: a worker that comes to it when the segment was released again would wait forever.
  ring_.publish_work(0);
  return {};
}

Done DeviceTask::start_pending() {
  const Lock lock = ring_.lock();
  if (task_.begun() || ring_.last_work().sequence <= last_end_) return ring_.failure();
  return prepare(Begin::kYes);
}

template <class IsDone, class IsReported>
Done DeviceTask::finish(IsDone&& is_done, IsReported&& is_reported, WaitMode mode) {
  if (!is_done()) {
    HEDDLE_ANSWER(start_pending());
    const Done waited = ring_.wait_until(is_done, is_reported, mode);
    ring_.drain_prints();
    HEDDLE_ANSWER(waited);
  }
  ring_.drain_prints();
  return ring_.failure();
}

Done DeviceTask::synchronize_stream(uint32_t stream, uint64_t sequence) {
  return finish([&] { return ring_.stream_reached(stream, sequence); },
                [&] { return ring_.device_reached(stream, sequence); }, wait_mode().load(std::memory_order_relaxed));
}

Done DeviceTask::synchronize_event(uint32_t event, uint32_t stream, uint64_t sequence, WaitMode mode) {
  return finish([&] { return ring_.event_reached(event, stream, sequence); },
                [&] { return ring_.device_reached(stream, sequence); }, mode);
}

Done DeviceTask::await_time(uint32_t event, uint64_t sequence) {
  return ring_.wait_until([&] { return ring_.event_seen(event, sequence); });
}

Done DeviceTask::synchronize() {
  RingPort::LastWork last;
  {
    const Lock lock = ring_.lock();
    last = ring_.last_work();
  }
  return finish([&] { return ring_.reached(last); }, [&] { return ring_.device_reached(last); },
                wait_mode().load(std::memory_order_relaxed));
}

Answer<bool> DeviceTask::begin_apart(DeviceTask& side) {
  HEDDLE_ANSWER(ring_.failure());
  resume();
  const bool with_home = !task_.begun();
  protocol::BeginTask first{0, {ring_.index()}};
  if (with_home) {
    auto offered = task_.offer();
    if (!offered) return tl::unexpected(failure_of(std::move(offered).error()));
    first = *offered;
  }
  auto granted = Result<bool>(false);
  if (auto second = side.task_.offer()) granted = ring_.session().begin_apart(first, *second);
  if (!granted || !*granted) {
    side.task_.declined();
    side.task_.forget_need();
    if (with_home) task_.declined();
    if (!granted) return tl::unexpected(Failure(std::move(granted).error()));
    return false;
  }
  if (with_home) HEDDLE_ANSWER(done(task_.accepted()));
  HEDDLE_ANSWER(side.done(side.task_.accepted()));
  return true;
}

Error DeviceTask::as_error(const Failure& failure) const {
  return {ring_.failure() ? ErrorCode::kPeerDied : ErrorCode::kDeviceFault, failure.text};
}

Failure DeviceTask::failure_of(Error error) const {
  if (error.code == ErrorCode::kDeviceFault) {
    if (Done failed = ring_.failure(); !failed) return std::move(failed).error();
  }
  return error;
}

// Follows at once on the work that the program waited for before it freed the last buffer.
Status DeviceTask::await_end() {
  ring_.session().end_task(ring_.index());
  const Done ended = ring_.wait_until([&] { return ring_.is_bound_to(protocol::Binding::kUnbound); });
  return ended ? Status{} : Status(tl::unexpected(as_error(ended.error())));
}

Result<uint64_t> DeviceTask::declare(const Segment& segment, bool answer) {
  if (task_.begun()) ring_.header().task_totals.extensions.fetch_add(1, std::memory_order_relaxed);
  return ring_.session().declare_segment(ring_.index(), segment, answer);
}

Status DeviceTask::begin(uint64_t serial, const protocol::ComputeNeed& need) {
  return ring_.session().begin_task(serial, need);
}

Status DeviceTask::grow(const protocol::ComputeNeed& need) {
  return ring_.session().grow_task(need);
}

Result<uint64_t> DeviceTask::append(RecordType type, uint64_t a) {
  const auto sequence = append(type, a, 0);
  if (!sequence) return tl::unexpected(as_error(sequence.error()));
  return *sequence;
}

void DeviceTask::withdrawn(const Segment& segment) {
  ring_.session().forget_segment(segment.number);
}

}  // namespace heddle::client
