#include "daemon/task_swaps.h"

#include "daemon/cuda_codes.h"
#include "daemon/task_request.h"
#include "daemon/task_trace.h"
#include "daemon/usage.h"
#include "policy/swapping.h"

namespace heddle::daemon {

Status TaskSwaps::may_swap(Session& session, const VirtualDevice& device) const {
  if (tasks_.grants_at_malloc_)
    return fail(ErrorCode::kNotSupported, "the policy %s does not count memory, so nobody waits for it",
                shared_.config.policy.c_str());
  return tasks_.swaps_.has_space_for(session, device);
}

bool TaskSwaps::follow(Session& session, VirtualDevice& device, Job* job) {
  const TaskState state = device.task->state;
  const bool suspended = job && job->suspended;
  if (suspended && job->swap && state == TaskState::kSuspended && !device.task->keeps_device) {
    swap_out(session, device, *job);
    return true;
  }
  if (suspended && state == TaskState::kReturning) {
    tasks_.scheduler_->resume_withdrawn(device.task->id, shared_.now());
    tasks_.leases_.left(session, device);
    tasks_.apply(session, device, TaskEvent::kSuspendAsked);
    return true;
  }
  if (!suspended && state == TaskState::kSwapped) {
    come_back(session, device);
    return true;
  }
  if (suspended || state != TaskState::kSwappingOut) return false;
  tasks_.apply(session, device, TaskEvent::kResumeAsked);
  return true;
}

void TaskSwaps::swap_out(Session& session, VirtualDevice& device, Job& job) {
  if (const Status may = may_swap(session, device); !may) {
    device.task->keeps_device = true;
    job.not_swapped = may.error().text;
    shared_.events.post(JobNotSwapped{job.id});
    return;
  }
  tasks_.apply(session, device, TaskEvent::kSwapAsked);
}

void TaskSwaps::memory_moved(const MemoryMoved& moved) {
  const auto [session, device] = shared_.registry.owner_of(moved.task);
  if (!session || device->swap_attempt != moved.attempt) return;
  Task& task = *device->task;
  if (task.state == TaskState::kSwappingIn) {
    if (!moved.status) return tasks_.fail_session(*session, kCudaMemoryAllocation, moved.status.error().text);
    trace_task(shared_, "swapped_in", *session, task, device->swapped, "");
    return tasks_.apply(*session, *device, TaskEvent::kSwappedIn);
  }
  if (task.state != TaskState::kSwappingOut) return;
  if (moved.status) return swapped_out(*session, *device);
  task.keeps_device = true;
  shared_.log->warn("task {} of session {} keeps its memory on device {}: {}", task.id.value, session->id.value,
                    task.device.value, moved.status.error().text);
  if (Job* job = shared_.registry.find_job(session->job)) {
    job->not_swapped = moved.status.error().text;
    shared_.events.post(JobNotSwapped{job->id});
  }
  tasks_.apply(*session, *device, TaskEvent::kSwapFailed);
}

// Its account with the device is closed: the time until it has one again is nobody's.
void TaskSwaps::swapped_out(Session& session, VirtualDevice& device) {
  Task& task = *device.task;
  trace_task(shared_, "swapped_out", session, task, device.swapped, "its memory lies in swap space");
  shared_.log->info("task {} of session {} has left device {}: {} lie in swap space", task.id.value, session.id.value,
                    task.device.value, to_string(device.swapped));
  const protocol::Usage used = close_account(device, shared_.registry, shared_.now());
  add(task.used, used);
  tasks_.scheduler_->served(session.id, task.device, service_of(used));
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

// One look at a time: what is leaving may be enough.
void TaskSwaps::make_room() {
  std::vector<TaskId> could_leave;
  for (const auto& [id, job] : shared_.registry.jobs) {
    if (!job.suspended) continue;
    for (const SessionId of : job.sessions) {
      Session* session = shared_.registry.find_session(of);
      if (!session || session->failed || session->ending) continue;
      for (const VirtualDevice& device : session->devices) {
        if (!device.task) continue;
        if (device.task->state == TaskState::kSwappingOut) return;
        if (device.task->state == TaskState::kSuspended && !device.task->keeps_device && may_swap(*session, device))
          could_leave.push_back(device.task->id);
      }
    }
  }
  for (const TaskId task : policy::Swapping::who_makes_room(*tasks_.scheduler_, could_leave)) {
    const auto [session, device] = shared_.registry.owner_of(task);
    // The one before it may have taken the space.
    if (session && may_swap(*session, *device)) tasks_.apply(*session, *device, TaskEvent::kSwapAsked);
  }
}

}  // namespace heddle::daemon
