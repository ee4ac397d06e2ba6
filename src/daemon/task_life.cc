// The part of Tasks that moves tasks from state to state: what the scheduler decides, what executors report, the end of
// sessions, and what is found after a restart.

#include "daemon/cuda_codes.h"
#include "daemon/eager_tasks.h"
#include "daemon/host_times.h"
#include "daemon/resumable.h"
#include "daemon/ring_words.h"
#include "daemon/task_request.h"
#include "daemon/task_swaps.h"
#include "daemon/task_trace.h"
#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

// Who waits for memory, or behind a declaration that waits, hears that there is nothing to wait for.
void answer_all(Session& session) {
  const auto deferred = std::exchange(session.deferred, std::nullopt);
  if (!session.connection) return;
  const auto refuse = [&](uint64_t request) {
    protocol::Refused refused{request};
    protocol::set_text(refused.text, session.failure);
    if (request != 0) session.connection->send(refused);
  };
  for (auto& [number, segment] : session.segments) refuse(std::exchange(segment.answers, 0));
  if (!deferred) return;
  refuse(deferred->request);
  session.connection->resume();
}

protocol::Usage sum_of(protocol::Usage sum, const protocol::Usage& more) {
  add(sum, more);
  return sum;
}

}  // namespace

// The one place where a task's state changes, and the one end of a task: what it holds or waits for returns to the
// scheduler then, which may have ended it itself.
void Tasks::apply(Session& session, VirtualDevice& device, TaskEvent event) {
  Task& task = *device.task;
  const auto step = next_step(task.state, event);
  if (!step) {
    shared_.log->error("task {} of session {}: {}", task.id.value, session.id.value, step.error().text);
    return fail_session(session, kCudaUnknown, "heddled lost track of the program's task: " + step.error().text);
  }
  const bool ends = step->to == TaskState::kEnded;
  if (ends && event != TaskEvent::kRefused) {
    const protocol::Usage used = close_account(device, shared_.registry, shared_.now());
    trace_task(shared_, "task_ended", session, task, device.live, session.failure, sum_of(task.used, used));
    if (has_device(task.state)) scheduler_->served(session.id, task.device, service_of(used));
    HostTimes::look(*this, session);
  }
  task.state = step->to;
  const bool stops = step->to == TaskState::kStopping;
  const Status done = performer_.perform(step->actions, session, device);
  // Its lease is withdrawn, so its executor hands nothing more to the device. What that still does is of no account:
  // the next one need not wait until the process has ended.
  if (stops) leases_.left(session, device);
  if (step->to == TaskState::kRunning) leases_.ready(session, device);
  if (!done) fail_session(session, kCudaMemoryAllocation, done.error().text);
  if (!ends) return follow_job(session, device);
  leases_.left(session, device);
  scheduler_->task_ended(task.id, shared_.now());
  shared_.registry.tasks.erase(task.id);
  device.task.reset();
  device.live = {};
}

// A suspended job's task that comes by its device, or by an executor's leave, is suspended in that moment: what is to
// be done follows from the task's state and the job's alone, after a restart too.
void Tasks::follow_job(Session& session, VirtualDevice& device) {
  if (session.failed || session.ending) return;
  Job* job = shared_.registry.find_job(session.job);
  const bool suspended = job && job->suspended;
  if (suspended && !keeps_variables(device)) executor_.retire_kept(session, device);
  if (!device.task) return;
  const TaskState state = device.task->state;
  if (TaskSwaps(*this).follow(session, device, job)) return;
  const bool leaves = suspended || device.task->gives_way != GivesWay::kNo;
  if (leaves && can_be_suspended(state)) return apply(session, device, TaskEvent::kSuspendAsked);
  if (!leaves && state == TaskState::kSuspended) apply(session, device, TaskEvent::kResumeAsked);
}

void Tasks::decide() {
  for (const Decision& decision : scheduler_->decisions(shared_.now())) {
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
      case Decision::Kind::kLeave:
        if (const auto [session, device] = shared_.registry.owner_of(decision.task); session)
          TaskSwaps(*this).leave(*session, *device, decision.reason);
        break;
    }
  }
}

void Tasks::granted(const Decision& decision) {
  const auto [session, device] = shared_.registry.owner_of(decision.task);
  if (!session) return;
  Task& task = *device->task;
  task.device = decision.device;
  task.reason = decision.reason;
  task.granted = shared_.now();
  if (scheduler_->assigns_jobs()) device->assigned = decision.device;
  if (decision.on_host.value != 0) EagerTasks(*this).put_on_host(*session, *device, decision);
  // The requests that its program had made before are no new ones.
  leases_.joined(*session, *device, decision.request == policy::RequestKind::kResume);
  shared_.log->info("task {} of session {} gets device {} after {}: {}", decision.task.value, session->id.value,
                    decision.device.value, to_string(decision.waited), decision.reason);
  apply(*session, *device, task.serial == 0 ? TaskEvent::kGrantedEarly : TaskEvent::kGranted);
  const bool again = decision.request == policy::RequestKind::kResume;
  if (device->task)
    trace_task(shared_, again ? "swapping_in" : "task_granted", *session, *device->task, decision.memory,
               decision.reason);
}

void Tasks::extended(const Decision& decision) {
  const auto [session, device] = shared_.registry.owner_of(decision.task);
  if (!session || device->task->asked.empty()) return;
  const uint64_t number = device->task->asked.front();
  device->task->asked.pop_front();
  const auto found = session->segments.find(number);
  if (found == session->segments.end()) return;
  trace_task(shared_, "extended", *session, *device->task, decision.memory, decision.reason);
  performer_.hold(*session, found->second);
  if (const Status added = performer_.add_memory(*session, *device, found->second); !added)
    fail_session(*session, kCudaMemoryAllocation, added.error().text);
}

void Tasks::refused(const Decision& decision) {
  const auto [session, device] = shared_.registry.owner_of(decision.task);
  if (!session) return;
  trace_task(shared_, "task_refused", *session, *device->task, decision.memory, decision.reason);
  shared_.log->info("task {} of session {} is refused {} after {}: {}", decision.task.value, session->id.value,
                    to_string(decision.memory), to_string(decision.waited), decision.reason);
  Segment* asked = nullptr;  // whose answer the program waits for
  if (decision.request == policy::RequestKind::kExtension) {
    if (device->task->asked.empty()) return;
    asked = &session->segments.at(device->task->asked.front());
    device->task->asked.pop_front();
    device->live -= asked->bytes;
  } else {
    for (Segment* segment : SegmentStore::of_device(*session, device->index)) {
      if (segment->answers != 0 && device->task->serial == 0) asked = segment;
    }
    apply(*session, *device, TaskEvent::kRefused);
  }
  const uint32_t code = cuda_code(decision.error);
  if (!asked || asked->answers == 0 || !session->connection) return fail_session(*session, code, decision.reason);
  TaskPerformer::refuse(*session, *asked, code, decision.reason);
  segments_.remove(*session, asked->number);
}

void Tasks::segment_freed(Session& session, VirtualDevice& device, uint64_t number) {
  if (!device.task || session.failed || session.ending) return;
  const auto found = session.segments.find(number);
  // One that is not there was freed before, and is said again after a restart.
  if (found == session.segments.end() || found->second.kind == protocol::SegmentKind::kHost ||
      found->second.virtual_device != device.index || found->second.state != Segment::State::kHeld)
    return;
  const Bytes bytes = found->second.bytes;
  SegmentStore::let_go(found->second);
  device.live -= bytes;
  if (found->second.swap.place == Segment::Swap::kOnHost) {
    scheduler_->host_memory_freed(device.task->id, bytes, shared_.now());
  } else {
    scheduler_->memory_freed(device.task->id, bytes, shared_.now());
  }
  segments_.remove(session, number);
  ask_for_held_back(session, device);
  shared_.events.books_changed();
}

void Tasks::finished(Session& session, VirtualDevice& device, bool unmapped) {
  device.last_serial = device.task->serial;
  apply(session, device, TaskEvent::kFinished);
  if (unmapped) SegmentStore::let_go_all(session, device.index);
  carry_over(session, device);
  if (session.deferred) shared_.events.post(SegmentRemoved{session.id});  // nobody has them mapped any more
  shared_.events.books_changed();
}

bool Tasks::executor_gone(Session& session, VirtualDevice& device, const std::string& why, bool certainly) {
  if (certainly) SegmentStore::let_go_all(session, device.index);
  if (!session.failed && !session.ending) fail_session(session, kCudaLaunchFailure, why);
  if (device.task) apply(session, device, TaskEvent::kExecutorGone);
  segments_.remove_all(session, device.index);
  shared_.events.books_changed();
  return released(session);
}

void Tasks::executor_lost(Session& session, VirtualDevice& device) {
  const bool suspended = device.task->state == TaskState::kSuspending;
  const char* const why = device.task->gives_way == GivesWay::kIdle        ? "it is idle, and others wait"
                          : device.task->gives_way == GivesWay::kDeadlock  ? "programs wait for each other"
                          : device.task->gives_way == GivesWay::kPromotion ? "memory of it on the host is promoted"
                          : suspended                                      ? "its job is suspended"
                                      : "its worker has ended, and another goes on";
  trace_task(shared_, suspended ? "suspended" : "resumed", session, *device.task, device.live, why);
  apply(session, device, TaskEvent::kExecutorLost);
  shared_.events.books_changed();
}

void Tasks::executor_stays(Session& session, VirtualDevice& device) {
  if (!device.task || device.task->state != TaskState::kSuspending) return;
  if (Job* job = shared_.registry.find_job(session.job); job && job->suspended) {
    job->suspended = false;
    job->not_suspended = lasting_obstacle(device);
    shared_.events.post(JobNotSuspended{job->id});
  }
  if (device.task->gives_way != GivesWay::kNo) TaskSwaps(*this).stay(session, device, lasting_obstacle(device));
  apply(session, device, TaskEvent::kExecutorStays);
}

void Tasks::fail_session(Session& session, uint32_t cuda_error, const std::string& text) {
  if (session.failed) return;
  session.failed = true;
  session.failure = text;
  shared_.log->warn("session {} of job {} (process {}, {}) fails with CUDA error {}: {}", session.id.value,
                    session.job.value, session.pid, session.program, cuda_error, text);
  for (VirtualDevice& device : session.devices) say_failed(device, cuda_error, text);
  answer_all(session);
  for (VirtualDevice& device : session.devices) release(session, device);
}

bool Tasks::end(Session& session) {
  if (session.ending) return false;
  session.ending = true;
  for (VirtualDevice& device : session.devices) release(session, device);
  return released(session);
}

// What the virtual device holds goes back: at once where nobody serves it, else when its executor is gone.
void Tasks::release(Session& session, VirtualDevice& device) {
  device.next.clear();
  executor_.retire_kept(session, device);
  if (device.task) apply(session, device, TaskEvent::kCancelled);
  if (device.task) return;
  segments_.remove_all(session, device.index);
  shared_.events.books_changed();
}

// Whether the session is over, and nothing of it is left with the scheduler.
bool Tasks::released(const Session& session) {
  const auto has_task = [](const VirtualDevice& device) { return device.task != nullptr; };
  if (!session.ending || std::any_of(session.devices.begin(), session.devices.end(), has_task)) return false;
  scheduler_->session_closed(session.id, shared_.now());
  shared_.events.books_changed();
  return true;
}

void Tasks::readopt(Session& session, VirtualDevice& device) {
  if (device.assigned && scheduler_->assigns_jobs())
    (void)scheduler_->adopt_assignment(session.id, device.index, *device.assigned,
                                       shared_.now());  // else asked for anew
  if (!device.task) return;
  Task& task = *device.task;
  shared_.registry.tasks[task.id] = {session.id, device.index};
  const bool runs = has_device(task.state) || task.state == TaskState::kSwapped;
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
  if (task.state == TaskState::kSwapped) {
    task.held_back = std::move(later);
    return TaskSwaps(*this).readopt(session, device);
  }
  policy::TaskRequest request = request_of(session, device);
  request.on_host = bytes_on_host(session, device);
  if (const Status adopted = scheduler_->adopt(request, task.device, shared_.now()); !adopted)
    return fail_session(session, kCudaDevicesUnavailable,
                        "heddled was restarted with another pool: " + adopted.error().text);
  leases_.joined(session, device, true);
  task.held_back = std::move(later);
  ask_for_held_back(session, device);
  const bool nobody_serves = task.state == TaskState::kPlaced && task.serial != 0;
  if (nobody_serves || task.state == TaskState::kSwappingIn) apply(session, device, TaskEvent::kRestored);
}

}  // namespace heddle::daemon
