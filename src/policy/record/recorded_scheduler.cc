#include "policy/record/recorded_scheduler.h"

#include <algorithm>

#include "policy/eager.h"
#include "policy/learning.h"
#include "policy/record/entry.h"
#include "policy/swapping.h"

namespace heddle::policy {

template <class... Values>
void RecordedScheduler::record(TimePoint at, std::string_view event, const Values&... values) {
  if (!log_) return;
  latest_ = std::max(latest_, at);
  log_->write(EntryWriter(at, event)(values...).line());
}

RecordedScheduler::RecordedScheduler(const std::string& policy, std::unique_ptr<Placement> placement,
                                     const std::vector<DeviceSpec>& devices, Options options, InputLog* log)
    : Scheduler(std::move(placement), devices, options), log_(log) {
  record({}, "scheduler", policy, options, devices.size());
  for (const DeviceSpec& device : devices) record({}, "device", device);
}

void RecordedScheduler::session_opened(SessionId session, JobId job, std::string model, Bytes budget, TimePoint now,
                                       UserId user, const std::string& app) {
  record(now, "open", session, job, model, budget, user, app);
  Scheduler::session_opened(session, job, std::move(model), budget, now, user, app);
}

void RecordedScheduler::session_closed(SessionId session, TimePoint now) {
  record(now, "close", session);
  Scheduler::session_closed(session, now);
}

void RecordedScheduler::task_arrived(const TaskRequest& request, TimePoint now) {
  record(now, "arrive", request);
  Scheduler::task_arrived(request, now);
}

void RecordedScheduler::compute_grew(TaskId task, const ComputeNeed& need, TimePoint now) {
  record(now, "grow", task, need);
  Scheduler::compute_grew(task, need, now);
}

void RecordedScheduler::extension_requested(TaskId task, Bytes more, TimePoint now) {
  record(now, "extend", task, more);
  Scheduler::extension_requested(task, more, now);
}

void RecordedScheduler::memory_freed(TaskId task, Bytes less, TimePoint now) {
  record(now, "free", task, less);
  Scheduler::memory_freed(task, less, now);
}

void RecordedScheduler::task_ended(TaskId task, TimePoint now) {
  record(now, "end", task);
  Scheduler::task_ended(task, now);
}

void RecordedScheduler::swapped_out(TaskId task, TimePoint now) {
  record(now, "swapped_out", task);
  Swapping(*this).swapped_out(task, now);
}

void RecordedScheduler::resume_requested(TaskId task, TimePoint now) {
  record(now, "resume", task);
  Swapping(*this).resume_requested(task, now);
}

void RecordedScheduler::resume_withdrawn(TaskId task, TimePoint now) {
  record(now, "withdraw", task);
  Swapping(*this).resume_withdrawn(task, now);
}

void RecordedScheduler::stays(TaskId task, const std::string& why, TimePoint now) {
  record(now, "stay", task, why);
  Swapping(*this).stays(task, why, now);
}

void RecordedScheduler::launched_eagerly(TaskId task, DeviceId device, Bytes on_host, TimePoint now) {
  record(now, "launch", task, device, on_host);
  Eager(*this).launched(task, device, on_host, now);
}

void RecordedScheduler::promoted(TaskId task, Bytes bytes, TimePoint now) {
  record(now, "promote", task, bytes);
  Eager(*this).promoted(task, bytes, now);
}

void RecordedScheduler::returned_to_host(TaskId task, Bytes bytes, TimePoint now) {
  record(now, "demote", task, bytes);
  Eager(*this).returned_to_host(task, bytes, now);
}

void RecordedScheduler::host_memory_freed(TaskId task, Bytes less, TimePoint now) {
  record(now, "free_host", task, less);
  Eager(*this).host_memory_freed(task, less, now);
}

void RecordedScheduler::served(SessionId session, DeviceId device, const Service& since_last) {
  record(latest_, "serve", session, device, since_last);
  Scheduler::served(session, device, since_last);
}

void RecordedScheduler::remember(const KnownApp& app) {
  record(latest_, "learned", app);
  Learning(*this).remember(app);
}

void RecordedScheduler::computed(SessionId session, Duration since_last) {
  record(latest_, "computed", session, since_last);
  Learning(*this).computed(session, since_last);
}

void RecordedScheduler::outside_memory(DeviceId device, Bytes used, TimePoint now) {
  record(now, "outside", device, used);
  Scheduler::outside_memory(device, used, now);
}

Status RecordedScheduler::adopt(const TaskRequest& request, DeviceId device, TimePoint now) {
  record(now, "adopt", request, device);
  return Scheduler::adopt(request, device, now);
}

Status RecordedScheduler::adopt_swapped(const TaskRequest& request, TimePoint now) {
  record(now, "adopt", request, kSwappedOut);
  return Swapping(*this).adopt(request, now);
}

Status RecordedScheduler::adopt_assignment(SessionId session, uint32_t virtual_device, DeviceId device, TimePoint now) {
  record(now, "assign", session, virtual_device, device);
  return Scheduler::adopt_assignment(session, virtual_device, device, now);
}

std::vector<Decision> RecordedScheduler::decisions(TimePoint now) {
  record(now, "decide");
  if (log_) log_->flush();  // a decision that ends the process is the one to be looked into
  std::vector<Decision> decided = Scheduler::decisions(now);
  for (const Decision& decision : decided) record(now, "=decided", decision);
  if (log_) log_->flush();
  return decided;
}

}  // namespace heddle::policy
