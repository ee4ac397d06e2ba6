#include "daemon/task_swaps.h"

#include "daemon/cuda_codes.h"
#include "daemon/resumable.h"
#include "daemon/ring_words.h"
#include "daemon/task_request.h"
#include "daemon/task_trace.h"
#include "daemon/usage.h"
#include "policy/swapping.h"

namespace heddle::daemon {

std::string TaskSwaps::copies_took(const VirtualDevice& device) const {
  const bool any = device.copies_began != TimePoint{};
  return to_string(any ? shared_.now() - device.copies_began : Duration{});
}

Status TaskSwaps::may_swap(Session& session, const VirtualDevice& device) const {
  if (tasks_.grants_at_malloc_)
    return fail(ErrorCode::kNotSupported, "the policy %s does not count memory, so nobody waits for it",
                shared_.config.policy.c_str());
  return tasks_.swaps_.has_space_for(session, device);
}

// The program has work for a device, and others have had its place, if it is in their way.
bool TaskSwaps::wants_back(VirtualDevice& device) const {
  const TaskState state = device.task->state;
  const bool may_turn_back = device.task->gives_way == GivesWay::kIdle;
  const bool on_its_way = state == TaskState::kSuspended || state == TaskState::kSwappingOut;
  if (state != TaskState::kSwapped && !(on_its_way && may_turn_back)) return false;
  say_away(device);
  return has_work(device);
}

bool TaskSwaps::follow(Session& session, VirtualDevice& device, Job* job) {
  const TaskState state = device.task->state;
  if (device.task->gives_way != GivesWay::kNo && wants_back(device)) stay(session, device);
  const bool promotes = device.task->gives_way == GivesWay::kPromotion;
  if (promotes && state == TaskState::kSuspended && !(job && job->suspended)) {
    shared_.events.books_changed();  // what becomes of it is decided in the turn
    return true;
  }
  if (promotes && state == TaskState::kSuspended) {
    forget_promotion(session, device);
    device.task->gives_way = GivesWay::kNo;
    tasks_.performer_.deposit_task(session, device);
  }
  const bool suspended = job && job->suspended, leaves = suspended || device.task->gives_way != GivesWay::kNo;
  const bool at_once = device.task->gives_way == GivesWay::kDeadlock || (suspended && job->swap);
  if (at_once && state == TaskState::kSuspended && !device.task->keeps_device) {
    swap_out(session, device, suspended ? job : nullptr);
    return true;
  }
  if (suspended && state == TaskState::kReturning) {
    tasks_.scheduler_->resume_withdrawn(device.task->id, shared_.now());
    tasks_.leases_.left(session, device);
    tasks_.apply(session, device, TaskEvent::kSuspendAsked);
    return true;
  }
  if (!leaves && state == TaskState::kSwapped) {
    come_back(session, device);
    return true;
  }
  if (leaves || state != TaskState::kSwappingOut) return false;
  tasks_.apply(session, device, TaskEvent::kResumeAsked);
  return true;
}

void TaskSwaps::give_way(Session& session, VirtualDevice& device, GivesWay why) {
  Task& task = *device.task;
  if (task.gives_way == GivesWay::kPromotion) forget_promotion(session, device);
  task.gives_way = why;
  tasks_.performer_.deposit_task(session, device);
  const char* const because = why == GivesWay::kIdle       ? "its program does nothing with it, and others wait"
                              : why == GivesWay::kDeadlock ? "programs wait for each other"
                                                           : "memory of it on the host is to be promoted";
  shared_.log->info("task {} of session {} gives way on device {}: {}", task.id.value, session.id.value,
                    task.device.value, because);
  tasks_.follow_job(session, device);
}

void TaskSwaps::leave(Session& session, VirtualDevice& device, const std::string& reason) {
  if (session.failed || session.ending) return;  // the task ends
  Task& task = *device.task;
  trace_task(shared_, "leaves", session, task, device.live, reason);
  std::string obstacle = task.state == TaskState::kRunning ? lasting_obstacle(device) : std::string();
  if (const Status may = may_swap(session, device); !may && obstacle.empty()) obstacle = may.error().text;
  if (task.keeps_device && obstacle.empty()) obstacle = "it could not be copied to swap space before";
  if (obstacle.empty()) return give_way(session, device, GivesWay::kDeadlock);
  tasks_.scheduler_->stays(task.id, obstacle, shared_.now());
  shared_.events.books_changed();
}

void TaskSwaps::stay(Session& session, VirtualDevice& device, const std::string& obstacle) {
  Task& task = *device.task;
  if (task.gives_way == GivesWay::kDeadlock && !obstacle.empty()) {
    tasks_.scheduler_->stays(task.id, obstacle, shared_.now());
    shared_.events.books_changed();
  }
  if (task.gives_way == GivesWay::kPromotion) {
    task.keeps_on_host = true;
    forget_promotion(session, device);
  }
  task.gives_way = GivesWay::kNo;
  if (has_device(task.state)) task.came_back = shared_.now();
  tasks_.performer_.deposit_task(session, device);
  if (task.state != TaskState::kSuspending) say_waiting(device);
}

// What was to be promoted stays on the host.
void TaskSwaps::forget_promotion(Session& session, VirtualDevice& device) {
  Bytes bytes;
  for (Segment* segment : SegmentStore::of_device(session, device.index)) {
    if (segment->swap.place != Segment::Swap::kPromoting) continue;
    segment->swap.place = Segment::Swap::kOnHost;
    bytes += segment->bytes;
  }
  tasks_.scheduler_->returned_to_host(device.task->id, bytes, shared_.now());
  shared_.events.books_changed();
}

void TaskSwaps::swap_out(Session& session, VirtualDevice& device, Job* job) {
  const Status may = may_swap(session, device);
  if (may) return begin_to_leave(session, device);
  if (job) {
    device.task->keeps_device = true;
    job->not_swapped = may.error().text;
    shared_.events.post(JobNotSwapped{job->id});
  }
  if (device.task->gives_way == GivesWay::kNo) return;
  stay(session, device, may.error().text);
  tasks_.follow_job(session, device);
}

void TaskSwaps::begin_to_leave(Session& session, VirtualDevice& device) {
  device.task->swap_began = shared_.now();
  tasks_.apply(session, device, TaskEvent::kSwapAsked);
}

void TaskSwaps::memory_moved(const MemoryMoved& moved) {
  const auto [session, device] = shared_.registry.owner_of(moved.task);
  if (!session || device->swap_attempt != moved.attempt) return;
  Task& task = *device->task;
  if (task.state == TaskState::kSwappingIn) {
    if (!moved.status) return tasks_.fail_session(*session, kCudaMemoryAllocation, moved.status.error().text);
    task.came_back = shared_.now();
    task.swap_took += task.came_back - task.granted;
    trace_task(shared_, "swapped_in", *session, task, device->swapped, "");
    shared_.log->info("task {} of session {} is back on device {}: {} copied in {}", task.id.value, session->id.value,
                      task.device.value, to_string(device->swapped), copies_took(*device));
    return tasks_.apply(*session, *device, TaskEvent::kSwappedIn);
  }
  if (task.state != TaskState::kSwappingOut) return;
  if (moved.status) return swapped_out(*session, *device);
  task.keeps_device = true;
  shared_.log->warn("task {} of session {} keeps its memory on device {}: {}", task.id.value, session->id.value,
                    task.device.value, moved.status.error().text);
  if (Job* job = shared_.registry.find_job(session->job); job && job->suspended) {
    job->not_swapped = moved.status.error().text;
    shared_.events.post(JobNotSwapped{job->id});
  }
  if (task.gives_way != GivesWay::kNo) stay(*session, *device, moved.status.error().text);
  tasks_.apply(*session, *device, TaskEvent::kSwapFailed);
}

// Its account with the device is closed: the time until it has one again is nobody's.
void TaskSwaps::swapped_out(Session& session, VirtualDevice& device) {
  Task& task = *device.task;
  trace_task(shared_, "swapped_out", session, task, device.swapped, "its memory lies in swap space");
  shared_.log->info("task {} of session {} has left device {}: {} lie in swap space, copied in {}", task.id.value,
                    session.id.value, task.device.value, to_string(device.swapped), copies_took(device));
  const protocol::Usage used = close_account(device, shared_.registry, shared_.now());
  add(task.used, used);
  tasks_.scheduler_->served(session.id, task.device, service_of(used));
  ++task.swaps;
  task.swap_took = shared_.now() - task.swap_began;
  tasks_.leases_.left(session, device);
  tasks_.scheduler_->swapped_out(task.id, shared_.now());
  task.granted = {};
  shared_.events.books_changed();
  tasks_.apply(session, device, TaskEvent::kSwappedOut);
}

void TaskSwaps::come_back(Session& session, VirtualDevice& device) {
  Task& task = *device.task;
  task.arrived = shared_.now();
  task.keeps_device = false;
  tasks_.leases_.waits(session, device);
  tasks_.scheduler_->resume_requested(task.id, shared_.now());
  shared_.events.books_changed();
  tasks_.apply(session, device, TaskEvent::kResumeAsked);
}

void TaskSwaps::readopt(Session& session, VirtualDevice& device) {
  if (const Status adopted = tasks_.scheduler_->adopt_swapped(request_of(session, device), shared_.now()); !adopted)
    return tasks_.fail_session(session, kCudaDevicesUnavailable,
                               "heddled was restarted with another pool or policy: " + adopted.error().text);
  tasks_.ask_for_held_back(session, device);
  tasks_.follow_job(session, device);
}

TaskSwaps::Leaving TaskSwaps::look_who_leaves() {
  Leaving leaving;
  for (auto& [id, session] : shared_.registry.sessions) {
    if (session.failed || session.ending) continue;
    const Job* job = shared_.registry.find_job(session.job);
    for (VirtualDevice& device : session.devices) {
      if (!device.task) continue;
      const Task& task = *device.task;
      const bool gives_way = task.gives_way != GivesWay::kNo;
      leaving.copying |= task.state == TaskState::kSwappingOut;
      // One that leaves for a deadlock may have a long kernel to end.
      const bool idle = task.gives_way == GivesWay::kIdle;
      leaving.coming |= idle && has_device(task.state) && task.state != TaskState::kSuspended;
      if (task.state != TaskState::kSuspended || task.gives_way == GivesWay::kPromotion) continue;
      const bool could = !task.keeps_device && may_swap(session, device);
      if (could) leaving.could.push_back(task.id);
      if (gives_way && !(job && job->suspended)) leaving.idle.push_back(task.id);
    }
  }
  return leaving;
}

// One look at a time: what is leaving may be enough.
bool TaskSwaps::make_room() {
  Leaving leaving = look_who_leaves();
  if (leaving.copying) return true;
  const auto chosen = policy::Swapping::who_makes_room(*tasks_.scheduler_, leaving.could, shared_.now());
  for (const TaskId task : chosen) {
    const auto [session, device] = shared_.registry.owner_of(task);
    // The one before it may have taken the space.
    if (session && may_swap(*session, *device)) begin_to_leave(*session, *device);
  }
  if (leaving.coming || !chosen.empty()) return true;
  for (const TaskId task : leaving.idle) {
    // Nobody needs its place any more.
    const auto [session, device] = shared_.registry.owner_of(task);
    if (!session || device->task->state != TaskState::kSuspended) continue;
    stay(*session, *device);
    tasks_.follow_job(*session, *device);
  }
  return leaving.idle.empty() && make_room_of_idle(std::move(leaving.could));
}

// Beside those that are suspended already. Both must have lasted: that somebody waits, and that a program does nothing.
bool TaskSwaps::make_room_of_idle(std::vector<TaskId> could_leave) {
  const bool waits = !tasks_.grants_at_malloc_ && policy::Swapping::anybody_waits(*tasks_.scheduler_);
  if (!tasks_.idle_holders_.due(waits)) return false;
  for (const TaskId task : tasks_.idle_holders_.look()) {
    const auto [session, device] = shared_.registry.owner_of(task);
    if (may_swap(*session, *device)) could_leave.push_back(task);
  }
  const TimePoint asked_by = shared_.now() - shared_.config.swap.idle;
  const auto chosen = policy::Swapping::who_makes_room(*tasks_.scheduler_, could_leave, asked_by);
  for (const TaskId task : chosen) {
    const auto [session, device] = shared_.registry.owner_of(task);
    if (session && device->task->state == TaskState::kRunning) give_way(*session, *device, GivesWay::kIdle);
  }
  return !chosen.empty();
}

}  // namespace heddle::daemon
