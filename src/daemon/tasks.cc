#include "daemon/tasks.h"

#include "daemon/cuda_codes.h"
#include "daemon/ring_words.h"
#include "daemon/task_request.h"

namespace heddle::daemon {
namespace {

// A job without a budget of its own is bounded by what its sessions may hold each.
constexpr Bytes kNoBudget{1ull << 62};

}  // namespace

Tasks::Tasks(Shared& shared, Workers& workers, SegmentStore& segments, Scheduler scheduler, SessionReleased released)
    : shared_(shared),
      workers_(workers),
      segments_(segments),
      scheduler_(std::move(scheduler)),
      released_(std::move(released)) {
  segments_.connect(
      {[this](Session& session, Segment& segment) { memory_came(session, segment); },
       [this](Session& session, const Error& why) { fail_session(session, kCudaMemoryAllocation, why.text); }});
}

void Tasks::session_opened(const Session& session) {
  const Job* job = shared_.registry.find_job(session.job);
  const Bytes budget = job && job->budget.value != 0 ? job->budget : kNoBudget;
  scheduler_->session_opened(session.id, session.job, session.model, budget, shared_.now());
  if (session.opened != TimePoint{}) workers_.expect();
}

void Tasks::declare(Session& session, const protocol::DeclareSegment& declared) {
  VirtualDevice& device = session.devices[declared.virtual_device];
  Segment& segment = segments_.add(session, declared);
  if (!device.task && segment.answer) {
    // The program waits for this memory before there is a task: the task begins here, and BeginTask adds its launch.
    segment.state = Segment::State::kAsked;
    auto task = std::make_unique<Task>();
    task->declared.virtual_device = device.index;
    start(session, device, std::move(task), segment.bytes);
  } else if (device.task && device.next.empty()) {
    device.task->held_back.push_back(segment.number);
    if (device.task->passed_on) ask_for_held_back(session, device);
  }
}

// What the client frees is off its own books before the worker has told us. So more than the budget is not refused
// while a task runs: it is held back until enough of those frees arrive.
void Tasks::ask_for_held_back(Session& session, VirtualDevice& device, bool reclaimed) {
  Task& task = *device.task;
  while (!task.held_back.empty()) {
    const auto found = session.segments.find(task.held_back.front());
    if (found != session.segments.end()) {
      Segment& segment = found->second;
      if (device.live + segment.bytes > session.budget && task.state == Task::State::kRunning) return;
      if (!std::exchange(reclaimed, false) && must_reclaim(session, task, segment.bytes)) return;
      segment.state = Segment::State::kAsked;
      segments_.deposit(session, segment);
      device.live += segment.bytes;
      task.asked.push_back(segment.number);
      scheduler_->extension_requested(task.id, segment.bytes, shared_.now());
      settle();
    }
    task.held_back.pop_front();
  }
}

Status Tasks::begin(Session& session, const protocol::BeginTask& begun) {
  VirtualDevice& device = session.devices[begun.need.virtual_device];
  const uint64_t known = !device.next.empty() ? device.next.back().serial
                         : device.task        ? std::max(device.task->serial, device.last_serial)
                                              : device.last_serial;
  if (begun.serial <= known) {
    if (session.resumed || begun.serial == known) return {};
    return fail(ErrorCode::kProtocol, "task %lu begins after task %lu", static_cast<unsigned long>(begun.serial),
                static_cast<unsigned long>(known));
  }
  constexpr size_t kMostNext = 64;  // a program waits for its work between tasks, so two are many
  if (device.next.size() >= kMostNext)
    return fail(ErrorCode::kProtocol, "%zu tasks were begun before the first has ended", device.next.size());
  if (device.task && device.task->serial != 0) {
    device.next.push_back(begun);
    return {};
  }
  if (!device.task) {
    device.next.push_back(begun);
    start_next(session, device);
    return {};
  }
  device.task->serial = begun.serial;
  device.task->declared = begun.need;
  device.task->need = need_of(begun.need);
  scheduler_->compute_grew(device.task->id, device.task->need, shared_.now());
  deposit_task(session, device);
  say_waiting(device);
  if (device.task->state == Task::State::kGranted) want_worker(session, device);
  settle();
  return {};
}

// What the task would ask for; nothing where its virtual device still has another.
std::optional<policy::TaskRequest> Tasks::request_apart(Session& session, const protocol::BeginTask& begun) {
  const VirtualDevice& device = session.devices[begun.need.virtual_device];
  if (device.task || !device.next.empty() || begun.serial <= device.last_serial) return std::nullopt;
  Bytes memory;
  for (const Segment* segment : SegmentStore::of_device(session, device.index)) memory += segment->bytes;
  return request_for(session, device, TaskId{shared_.ids.next()}, memory, need_of(begun.need));
}

Result<bool> Tasks::begin_apart(Session& session, const protocol::BeginApart& begun) {
  VirtualDevice& first = session.devices[begun.first.need.virtual_device];
  VirtualDevice& second = session.devices[begun.second.need.virtual_device];
  // Said again, to the successor of the heddled that granted it.
  if (session.resumed && second.task && second.task->serial == begun.second.serial) return true;
  const bool both = begun.first.serial != 0 && !first.task;
  const bool first_runs = first.task && first.task->serial != 0 && first.task->state != Task::State::kWaiting;
  std::vector<policy::TaskRequest> requests;
  bool possible = both || first_runs;
  for (const protocol::BeginTask* task : {&begun.first, &begun.second}) {
    if (!possible || (task == &begun.first && !both)) continue;
    auto request = request_apart(session, *task);
    possible = request.has_value();
    if (possible) requests.push_back(std::move(*request));
  }
  if (!possible || !scheduler_->could_start_apart(requests)) {
    if (possible) (void)reclaim_for(session);  // for the next time: this one is answered at once
    if (!second.task) drop_segments(session, second);
    if (both) drop_segments(session, first);
    return false;
  }
  if (both) HEDDLE_TRY(begin(session, begun.first));
  HEDDLE_TRY(begin(session, begun.second));
  return true;
}

// The task that was begun next, with everything that its virtual device has declared.
void Tasks::start_next(Session& session, VirtualDevice& device) {
  const protocol::BeginTask begun = device.next.front();
  device.next.pop_front();
  auto task = std::make_unique<Task>();
  task->serial = begun.serial;
  task->declared = begun.need;
  task->need = need_of(begun.need);
  Bytes memory;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    segment->state = Segment::State::kAsked;
    memory += segment->bytes;
  }
  start(session, device, std::move(task), memory);
}

// Everything of the virtual device that is asked for goes with the request.
void Tasks::start(Session& session, VirtualDevice& device, std::unique_ptr<Task> task, Bytes memory) {
  task->id = TaskId{shared_.ids.next()};
  task->arrived = shared_.now();
  owners_[task->id] = {session.id, device.index};
  device.task = std::move(task);
  device.live = memory;
  deposit_task(session, device);
  for (const Segment* segment : SegmentStore::of_device(session, device.index)) segments_.deposit(session, *segment);
  if (device.task->serial != 0) say_waiting(device);
  trace("task_arrived", session, *device.task, memory, "");
  arrive(session, device);
}

void Tasks::compute_grew(Session& session, const protocol::ComputeNeed& need) {
  VirtualDevice& device = session.devices[need.virtual_device];
  if (!device.next.empty()) {
    device.next.back().need = need;
    return;
  }
  if (!device.task) return;
  device.task->declared = need;
  device.task->need = need_of(need);
  scheduler_->compute_grew(device.task->id, device.task->need, shared_.now());
  settle();
}

void Tasks::fail_session(Session& session, uint32_t cuda_error, const std::string& text) {
  if (session.failed) return;
  session.failed = true;
  session.failure = text;
  shared_.log->warn("session {} of job {} (process {}, {}) fails with CUDA error {}: {}", session.id.value,
                    session.job.value, session.pid, session.program, cuda_error, text);
  for (VirtualDevice& device : session.devices) {
    say_failed(device, cuda_error, text);
    release(session, device);
  }
}

void Tasks::end(Session& session) {
  if (session.ending) return;
  session.ending = true;
  for (VirtualDevice& device : session.devices) release(session, device);
  finish_if_released(session);
}

// What the virtual device holds goes back: at once where no worker has it, else when the worker is gone.
void Tasks::release(Session& session, VirtualDevice& device) {
  device.next.clear();
  if (Worker* kept = workers_.kept_for(session.id, device.index)) workers_.retire(*kept);
  if (device.worker) return workers_.kill(*device.worker);
  forget(session, device);
}

void Tasks::forget(Session& session, VirtualDevice& device) {
  if (device.task) end_task(session, device, "task_ended", device.live, session.failure);
  drop_segments(session, device);
  settle();
}

// What it holds or waits for returns to the scheduler, which may have ended it itself.
void Tasks::end_task(const Session& session, VirtualDevice& device, const char* how, Bytes memory,
                     const std::string& reason) {
  const TaskId id = device.task->id;
  trace(how, session, *device.task, memory, reason);
  scheduler_->task_ended(id, shared_.now());
  shared_.vault.withdraw(NoteKind::kTask, id.value);
  owners_.erase(id);
  device.task.reset();
  device.live = {};
}

void Tasks::drop_segments(Session& session, VirtualDevice& device) {
  for (Segment* segment : SegmentStore::of_device(session, device.index)) segments_.remove(session, segment->number);
  device.live = {};
}

void Tasks::finish_if_released(Session& session) {
  if (!session.ending) return;
  for (const VirtualDevice& device : session.devices) {
    if (device.worker) return;
  }
  const SessionId id = session.id;
  scheduler_->session_closed(id, shared_.now());
  settle();
  released_(id);
}

// The segments that outlive a task belong to the next. No record has touched them: behind the task's end the worker
// reads nothing.
void Tasks::carry_over(Session& session, VirtualDevice& device) {
  Bytes waiting_for_answer;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    segments_.unback(session, *segment);
    segment->state = Segment::State::kNamed;
    if (binds_at_malloc_) waiting_for_answer += segment->bytes;
  }
  device.live = {};
  if (!device.next.empty()) return start_next(session, device);
  if (waiting_for_answer.value == 0) return;
  // Memory that the program was promised stays promised.
  for (Segment* segment : SegmentStore::of_device(session, device.index)) segment->state = Segment::State::kAsked;
  auto task = std::make_unique<Task>();
  task->declared.virtual_device = device.index;
  start(session, device, std::move(task), waiting_for_answer);
}

void Tasks::deposit_task(const Session& session, const VirtualDevice& device) {
  const Task& task = *device.task;
  TaskNote note{};
  note.session = session.id.value;
  note.serial = task.serial;
  note.arrived_ns = static_cast<uint64_t>(task.arrived.time_since_epoch().count());
  note.need = task.declared;
  note.need.virtual_device = device.index;
  note.granted = task.state == Task::State::kWaiting ? 0 : 1;
  note.device = static_cast<uint32_t>(task.device.value);
  shared_.vault.deposit(NoteKind::kTask, task.id.value, write_note(note), -1);
}

void Tasks::deposit_ring(const Session& session, const VirtualDevice& device) {
  RingNote note{};
  note.session = session.id.value;
  note.last_serial = device.last_serial;
  note.generation = device.generation;
  note.virtual_device = device.index;
  note.bound_device = device.bound ? static_cast<int32_t>(device.bound->value) : -1;
  shared_.vault.deposit(NoteKind::kRing, device.ring_key, write_note(note), device.ring_memory.get());
}

void Tasks::trace(const char* kind, const Session& session, const Task& task, Bytes memory, const std::string& reason) {
  TraceEvent event;
  event.time = shared_.now();
  event.kind = kind;
  event.job = session.job;
  event.session = session.id;
  event.task = task.id;
  event.device = task.state == Task::State::kWaiting ? -1 : static_cast<int64_t>(task.device.value);
  event.memory = memory;
  event.reason = reason;
  event.uid = session.uid;
  event.usage = task.usage;
  shared_.trace.add(std::move(event));
}

void Tasks::readopt() {
  for (auto& [id, session] : shared_.registry.sessions) {
    session_opened(session);
    for (VirtualDevice& device : session.devices) readopt(session, device);
  }
  settle();
}

void Tasks::readopt(Session& session, VirtualDevice& device) {
  if (device.bound && scheduler_->binds())
    (void)scheduler_->adopt_binding(session.id, device.index, *device.bound, shared_.now());  // else asked for anew
  if (!device.task) return;
  Task& task = *device.task;
  owners_[task.id] = {session.id, device.index};
  const bool runs = task.state != Task::State::kWaiting;
  std::deque<uint64_t> later;
  Bytes memory;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (runs && segment->state != Segment::State::kHeld) {
      later.push_back(segment->number);  // an extension that was not decided
      continue;
    }
    if (!runs) segment->state = Segment::State::kAsked;
    memory += segment->bytes;
  }
  device.live = memory;
  if (!runs) return arrive(session, device);
  task.passed_on = true;
  if (const Status adopted = scheduler_->adopt(request_of(session, device), task.device, shared_.now()); !adopted)
    return fail_session(session, kCudaDevicesUnavailable,
                        "heddled was restarted with another pool: " + adopted.error().text);
  task.held_back = std::move(later);
  ask_for_held_back(session, device);
  if (!device.worker && task.serial != 0) want_worker(session, device);
}

}  // namespace heddle::daemon
