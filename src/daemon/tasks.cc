#include "daemon/tasks.h"

#include "daemon/cuda_codes.h"
#include "daemon/task_request.h"
#include "daemon/task_trace.h"
#include "daemon/tenant.h"

namespace heddle::daemon {
namespace {

// A job without a budget of its own is bounded by what its sessions may hold each.
constexpr Bytes kNoBudget{1ull << 62};

// What the task would ask for; nothing where its virtual device still has another.
std::optional<policy::TaskRequest> request_apart(IdSource& ids, Session& session, const protocol::BeginTask& begun) {
  const VirtualDevice& device = session.devices[begun.need.virtual_device];
  if (device.task || !device.next.empty() || begun.serial <= device.last_serial) return std::nullopt;
  Bytes memory;
  for (const Segment* segment : SegmentStore::of_device(session, device.index)) memory += segment->bytes;
  return request_for(session, device, TaskId{ids.next()}, memory, need_of(begun.need));
}

}  // namespace

Tasks::Tasks(Shared& shared, Executor& executor, SegmentStore& segments, Leases& leases, Swaps& swaps,
             Scheduler scheduler, bool grants_at_malloc)
    : shared_(shared),
      executor_(executor),
      segments_(segments),
      leases_(leases),
      swaps_(swaps),
      performer_(shared, segments, executor, swaps),
      idle_(shared, executor),
      idle_holders_(shared),
      scheduler_(std::move(scheduler)),
      grants_at_malloc_(grants_at_malloc) {}

void Tasks::session_opened(const Session& session) {
  const Job* job = shared_.registry.find_job(session.job);
  const Bytes budget = job && job->budget.value != 0 ? job->budget : kNoBudget;
  const std::string app = job ? tenant_of(*job, session).app : std::string();
  scheduler_->session_opened(session.id, session.job, session.model, budget, shared_.now(), UserId{session.uid}, app);
  if (session.opened != TimePoint{}) executor_.session_opened();
}

void Tasks::declare(Session& session, const protocol::DeclareSegment& declared) {
  VirtualDevice& device = session.devices[declared.virtual_device];
  Segment& segment = segments_.add(session, declared);
  if (!device.task && segment.answers != 0) {
    // The program waits for this memory before there is a task: the task begins here, and BeginTask adds its launch.
    segment.state = Segment::State::kAsked;
    auto task = std::make_unique<Task>();
    task->declared.virtual_device = device.index;
    start(session, device, std::move(task), segment.bytes);
  } else if (device.task && device.next.empty()) {
    device.task->held_back.push_back(segment.number);
    if (device.task->state != TaskState::kArriving) ask_for_held_back(session, device);
    follow_job(session, device);  // it may be away
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
      if (device.live + segment.bytes > session.budget && has_begun(task.state)) return;
      if (!std::exchange(reclaimed, false) && !scheduler_->could_extend(task.id, segment.bytes) &&
          idle_.reclaim_for(session))
        return idle_.delay(task.id);
      segment.state = Segment::State::kAsked;
      segments_.deposit(session, segment);
      device.live += segment.bytes;
      task.asked.push_back(segment.number);
      scheduler_->extension_requested(task.id, segment.bytes, shared_.now());
      shared_.events.books_changed();
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
  apply(session, device, TaskEvent::kBegun);
  shared_.events.books_changed();
  return {};
}

Result<bool> Tasks::begin_apart(Session& session, const protocol::BeginApart& begun) {
  VirtualDevice& first = session.devices[begun.first.need.virtual_device];
  VirtualDevice& second = session.devices[begun.second.need.virtual_device];
  // Said again, to the successor of the heddled that granted it.
  if (session.resumed && second.task && second.task->serial == begun.second.serial) return true;
  const bool both = begun.first.serial != 0 && !first.task;
  const bool first_runs = first.task && first.task->serial != 0 && has_device(first.task->state);
  std::vector<policy::TaskRequest> requests;
  // Who is kept waiting for a device cannot have two at once.
  bool possible = first_runs || (both && !leases_.keeps_devices());
  for (const protocol::BeginTask* task : {&begun.first, &begun.second}) {
    if (!possible || (task == &begun.first && !both)) continue;
    auto request = request_apart(shared_.ids, session, *task);
    possible = request.has_value();
    if (possible) requests.push_back(std::move(*request));
  }
  if (!possible || !scheduler_->could_start_apart(requests)) {
    if (possible) (void)idle_.reclaim_for(session);  // for the next time: this one is answered at once
    if (!second.task) segments_.remove_all(session, second.index);
    if (both) segments_.remove_all(session, first.index);
    shared_.events.books_changed();
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
  shared_.registry.tasks[task->id] = {session.id, device.index};
  device.task = std::move(task);
  device.live = memory;
  apply(session, device, device.task->serial == 0 ? TaskEvent::kMemoryAsked : TaskEvent::kBegun);
  trace_task(shared_, "task_arrived", session, *device.task, memory, "");
  arrive(session, device);
}

// A request that would wait or be refused is made when what is idle is back (idle_memory.h).
void Tasks::arrive(Session& session, VirtualDevice& device) {
  if (!grants_at_malloc_) leases_.waits(session, device);
  if (!scheduler_->could_start(request_of(session, device)) && idle_.reclaim_for(session))
    return idle_.delay(device.task->id);
  pass_on(session, device);
}

void Tasks::pass_on(Session& session, VirtualDevice& device) {
  apply(session, device, TaskEvent::kRequested);
  scheduler_->task_arrived(request_of(session, device), shared_.now());
  shared_.events.books_changed();
  ask_for_held_back(session, device);
}

void Tasks::resume(const std::deque<TaskId>& delayed) {
  idle_.resumed();
  for (const TaskId task : delayed) {
    const auto [session, device] = shared_.registry.owner_of(task);
    if (!session) continue;
    if (device->task->state == TaskState::kArriving) {
      pass_on(*session, *device);
    } else {
      ask_for_held_back(*session, *device, true);
    }
  }
  shared_.events.books_changed();
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
  shared_.events.books_changed();
}

// The segments that outlive a task belong to the next. No record has touched them: behind the task's end the worker
// reads nothing.
void Tasks::carry_over(Session& session, VirtualDevice& device) {
  Bytes waiting_for_answer;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    segments_.unback(session, *segment);
    segment->state = Segment::State::kNamed;
    if (grants_at_malloc_) waiting_for_answer += segment->bytes;
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

void Tasks::readopt() {
  for (auto& [id, session] : shared_.registry.sessions) {
    session_opened(session);
    for (VirtualDevice& device : session.devices) readopt(session, device);
  }
  shared_.events.books_changed();
}

}  // namespace heddle::daemon
