// The part of Tasks that carries decisions out: memory for what was granted, workers for who has a device, and what
// workers report.

#include "daemon/cuda_codes.h"
#include "daemon/ring_words.h"
#include "daemon/tasks.h"

namespace heddle::daemon {
namespace {

// From a worker's return after a restart until it is told what it may be missing. Right behind its return it says again
// what it has freed; only a segment that is still there may be sent to it.
constexpr Duration kReturnSettles = std::chrono::milliseconds(100);

}  // namespace

std::pair<Session*, VirtualDevice*> Tasks::owner_of(TaskId task) {
  const auto found = owners_.find(task);
  if (found == owners_.end()) return {};
  Session* session = shared_.registry.find_session(found->second.first);
  if (!session) return {};
  return {session, &session->devices[found->second.second]};
}

// Decisions are taken once for all that happened in a round of the loop.
void Tasks::settle() {
  if (settling_) return;
  settling_ = true;
  shared_.loop.defer([this] {
    settling_ = false;
    decide();
  });
}

void Tasks::decide() {
  const TimePoint now = shared_.now();
  for (const Decision& decision : scheduler_->decisions(now)) {
    switch (decision.kind) {
      case Decision::Kind::kGrant:
        granted(decision);
        break;
      case Decision::Kind::kExtend:
        extended(decision);
        break;
      case Decision::Kind::kRefuse:
        refused(decision);
        break;
      case Decision::Kind::kBind:
        break;  // places are taken with tasks; nothing asks for one alone
    }
  }
  say_who_may_idle();
  deadline_.reset();
  if (const auto next = scheduler_->next_deadline()) deadline_ = shared_.loop.at(*next, [this] { decide(); });
}

void Tasks::granted(const Decision& decision) {
  const auto [session, device] = owner_of(decision.task);
  if (!session || !device->task) return;
  Task& task = *device->task;
  task.state = Task::State::kGranted;
  task.device = decision.device;
  task.reason = decision.reason;
  task.granted = shared_.now();
  if (scheduler_->binds()) device->bound = decision.device;
  trace("task_granted", *session, task, decision.memory, decision.reason);
  deposit_task(*session, *device);
  deposit_ring(*session, *device);
  // Extensions that were asked for meanwhile are decided on their own.
  std::set<uint64_t> open(task.asked.begin(), task.asked.end());
  std::vector<Segment*> granted;
  for (Segment* segment : SegmentStore::of_device(*session, device->index)) {
    if (segment->state != Segment::State::kAsked || open.contains(segment->number)) continue;
    segment->state = Segment::State::kHeld;
    segments_.deposit(*session, *segment);
    granted.push_back(segment);
  }
  for (Segment* segment : granted) answer(*session, *segment);
  const SessionId id = session->id;
  if (task.serial != 0) want_worker(*session, *device);  // may be the session's end
  shared_.log->info("task {} of session {} gets device {} after {}: {}", decision.task.value, id.value,
                    decision.device.value, to_string(decision.waited), decision.reason);
}

// Behind the deposits: a program is told of nothing that a restart could take back.
void Tasks::answer(const Session& session, Segment& segment) {
  if (std::exchange(segment.answer, false) && session.connection)
    session.connection->send(protocol::SegmentAnswer{segment.number});
}

void Tasks::extended(const Decision& decision) {
  const auto [session, device] = owner_of(decision.task);
  if (!session || !device->task || device->task->asked.empty()) return;
  const uint64_t number = device->task->asked.front();
  device->task->asked.pop_front();
  const auto found = session->segments.find(number);
  if (found == session->segments.end()) return;
  Segment& segment = found->second;
  segment.state = Segment::State::kHeld;
  trace("extended", *session, *device->task, decision.memory, decision.reason);
  segments_.deposit(*session, segment);
  answer(*session, segment);
  if (!takes_memory(*device)) return;
  if (const Status backed = segments_.back(*session, segment); !backed)
    return fail_session(*session, kCudaMemoryAllocation, backed.error().text);
  if (segment.memory) send_device_segment(*device->worker, segment);
}

void Tasks::refused(const Decision& decision) {
  const auto [session, device] = owner_of(decision.task);
  if (!session || !device->task) return;
  shared_.log->info("task {} of session {} is refused {} after {}: {}", decision.task.value, session->id.value,
                    to_string(decision.memory), to_string(decision.waited), decision.reason);
  Segment* asked = nullptr;  // whose answer the program waits for
  if (decision.request == policy::RequestKind::kExtension) {
    trace("task_refused", *session, *device->task, decision.memory, decision.reason);
    if (device->task->asked.empty()) return;
    asked = &session->segments.at(device->task->asked.front());
    device->task->asked.pop_front();
    device->live -= asked->bytes;
  } else {
    for (Segment* segment : SegmentStore::of_device(*session, device->index)) {
      if (segment->answer && device->task->serial == 0) asked = segment;
    }
    end_task(*session, *device, "task_refused", decision.memory, decision.reason);
  }
  const uint32_t code = cuda_code(decision.error);
  if (!asked || !asked->answer || !session->connection) return fail_session(*session, code, decision.reason);
  protocol::SegmentAnswer answer{asked->number, code};
  protocol::set_text(answer.text, decision.reason);
  session->connection->send(answer);
  remove_segment(*session, *asked);
}

void Tasks::remove_segment(Session& session, Segment& segment) {
  segments_.remove(session, segment.number);
  on_segment_removed(session);
}

void Tasks::want_worker(Session& session, VirtualDevice& device) {
  const DeviceId on = device.task->device;
  if (Worker* kept = workers_.kept_for(session.id, device.index)) {
    if (kept->device == on) return bind(session, device, *kept);
    workers_.retire(*kept);
  }
  shared_.registry.devices[on.value].wanting.push_back({session.id, device.index});
  bind_waiting(on);
  workers_.refill(on);
}

void Tasks::bind_waiting(DeviceId on) {
  auto& wanting = shared_.registry.devices[on.value].wanting;
  while (!wanting.empty()) {
    Session* session = shared_.registry.find_session(wanting.front().first);
    VirtualDevice* device = session ? &session->devices[wanting.front().second] : nullptr;
    const bool wants = device && !session->failed && !session->ending && device->task && !device->worker &&
                       device->task->state == Task::State::kGranted && device->task->device == on;
    if (wants) {
      Worker* worker = workers_.take_warm(on);
      if (!worker) return;
      bind(*session, *device, *worker);
    }
    wanting.pop_front();
  }
}

void Tasks::bind(Session& session, VirtualDevice& device, Worker& worker) {
  Task& task = *device.task;
  const bool stayed = worker.state == Worker::State::kKept;
  task.state = Task::State::kRunning;
  device.worker = &worker;
  if (!stayed) ++device.generation;
  // Told ahead of the books: the program may go on, and nothing of it is done before the worker has its memory.
  say_bound(device, task.device, task.serial);
  const Status backed = back_all(session, device);
  deposit_ring(session, device);
  workers_.bound(worker, session.id, device.index, task.serial);
  if (!backed) return fail_session(session, kCudaMemoryAllocation, backed.error().text);
  shared_.log->debug("worker {} serves session {}, task {}", worker.id.value, session.id.value, task.id.value);
  if (stayed) {
    worker.connection->send(protocol::NextTask{task.serial});
    return send_device_segments(session, device);
  }
  send_binding(session, device);
  send_everything(session, device);
}

Status Tasks::back_all(Session& session, const VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->state == Segment::State::kHeld) HEDDLE_TRY(segments_.back(session, *segment));
  }
  return {};
}

void Tasks::send_binding(const Session& session, VirtualDevice& device) {
  protocol::BindSession binding;
  binding.session = session.id.value;
  binding.ring_bytes = device.ring->size().value;
  binding.task_serial = device.task->serial;
  binding.window = *session.window;
  binding.virtual_device = device.index;
  device.worker->connection->send(binding, device.ring_memory);
}

void Tasks::send_everything(Session& session, VirtualDevice& device) {
  for (const Module& module : session.modules) device.worker->connection->send(module.message, module.memory);
  for (const Segment* segment : SegmentStore::on_host(session)) send_segment(*device.worker, *segment, false);
  send_device_segments(session, device);
}

void Tasks::send_device_segments(Session& session, VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->memory) send_device_segment(*device.worker, *segment);
  }
  proceed(device);
}

// Not before all that was granted has its memory, and the worker has been told of it.
void Tasks::proceed(const VirtualDevice& device) {
  if (device.requests == 0) device.worker->connection->send(protocol::Proceed{});
}

// A worker that is not back yet after a restart gets everything at once when it is: Proceed behind a part of it would
// let it run on without the rest.
bool Tasks::takes_memory(const VirtualDevice& device) {
  return device.worker && device.worker->connection && !device.worker->returning;
}

// From a keeper.
void Tasks::memory_came(Session& session, Segment& segment) {
  VirtualDevice& device = session.devices[segment.virtual_device];
  if (!takes_memory(device) || session.failed || session.ending) return;
  send_device_segment(*device.worker, segment);
  proceed(device);
}

void Tasks::send_device_segment(Worker& worker, Segment& segment) {
  SegmentStore::give(segment);
  send_segment(worker, segment, false);
}

void Tasks::send_segment(Worker& worker, const Segment& segment, bool release) {
  const protocol::MapSegment message{segment.number, segment.address, segment.bytes.value, segment.kind, release};
  if (release) {
    worker.connection->send(message);
  } else {
    worker.connection->send(message, segment.memory);
  }
}

// The virtual device's worker cannot touch any of its memory any more.
void Tasks::let_go(Session& session, const VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) SegmentStore::let_go(*segment);
}

// Which serves the virtual device or is kept for it, and can be told.
Worker* Tasks::worker_of(const Session& session, const VirtualDevice& device) {
  Worker* worker = device.worker ? device.worker : workers_.kept_for(session.id, device.index);
  return worker && worker->connection ? worker : nullptr;
}

void Tasks::map_host(Session& session, const Segment& segment, bool release) {
  for (const VirtualDevice& device : session.devices) {
    if (Worker* worker = worker_of(session, device)) send_segment(*worker, segment, release);
  }
}

void Tasks::send_module(Session& session, const Module& module) {
  for (const VirtualDevice& device : session.devices) {
    if (Worker* worker = worker_of(session, device)) worker->connection->send(module.message, module.memory);
  }
}

void Tasks::worker_warm(Worker& worker) {
  bind_waiting(worker.device);
}

void Tasks::worker_returned(Worker& worker, const protocol::WorkerReady& ready) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task) return workers_.kill(worker);
  const uint64_t serial = device->task->serial;
  const bool ours = ready.session == session->id.value && ready.virtual_device == device->index;
  if (ready.session == 0) {
    send_binding(*session, *device);  // heddled died before it could say whom to serve
  } else if (!ours || ready.task_serial > serial) {
    return fail_session(*session, kCudaUnknown, "a worker came back that serves another task");
  } else if (ready.task_serial < serial) {
    worker.connection->send(protocol::NextTask{serial});  // or which task to go on with
  }
  worker.returning = true;
  worker.patience = shared_.loop.after(kReturnSettles, [this, id = worker.id] { complete_return(id); });
}

void Tasks::complete_return(WorkerId id) {
  Worker& worker = shared_.registry.workers.at(id);
  worker.returning = false;
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || !worker.connection || session->failed || session->ending) return;
  if (const Status backed = back_all(*session, *device); !backed)
    return fail_session(*session, kCudaMemoryAllocation, backed.error().text);
  send_everything(*session, *device);
  say_bound(*device, device->task->device, device->task->serial);
}

void Tasks::segment_freed(Worker& worker, uint64_t number) {
  if (number == 0) return reclaimed(worker.id);
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || session->failed || session->ending) return;
  const auto found = session->segments.find(number);
  // One that is not there was freed before, and is said again after a restart.
  if (found == session->segments.end() || found->second.kind == protocol::SegmentKind::kHost ||
      found->second.virtual_device != device->index || found->second.state != Segment::State::kHeld)
    return;
  const Bytes bytes = found->second.bytes;
  SegmentStore::let_go(found->second);
  device->live -= bytes;
  scheduler_->memory_freed(device->task->id, bytes, shared_.now());
  segments_.remove(*session, number);
  ask_for_held_back(*session, *device);
  on_segment_removed(*session);
  settle();
}

void Tasks::task_ended(Worker& worker, const protocol::TaskEnded& ended) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || device->task->serial != ended.serial || session->failed || session->ending) return;
  end_task(*session, *device, "task_ended", device->live, "");
  device->last_serial = ended.serial;
  device->worker = nullptr;
  deposit_ring(*session, *device);
  if (device->next.empty()) say_unbound(*device);
  if (ended.unmapped) let_go(*session, *device);
  carry_over(*session, *device);
  ended.reset ? workers_.retire(worker) : workers_.keep(worker);
  on_segment_removed(*session);
  settle();
}

void Tasks::usage(Worker& worker, const protocol::Usage& usage) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (session && device->task) device->task->usage = usage;
}

void Tasks::worker_gone(Worker& worker, const std::string& how, bool certainly) {
  reclaimed(worker.id);
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!worker.killed && worker.state == Worker::State::kBound) share_fault(worker, "a worker ended with " + how);
  if (!session) return;
  if (!worker.killed) died_at_work(worker, *session, *device);
  device->worker = nullptr;
  if (certainly) let_go(*session, *device);
  if (!session->failed && !session->ending)
    fail_session(
        *session, kCudaLaunchFailure,
        stringf("worker %lu, process %d, on device %lu ended unexpectedly (%s); the program's device memory is lost",
                static_cast<unsigned long>(worker.id.value), worker.pid,
                static_cast<unsigned long>(worker.device.value), how.c_str()));
  forget(*session, *device);
  finish_if_released(*session);
}

}  // namespace heddle::daemon
