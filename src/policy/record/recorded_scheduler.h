#pragma once

#include <cstdint>

#include "core/input_log.h"
#include "policy/scheduler.h"

namespace heddle::policy {

// A scheduler that has what it is told, and what it decides, written to a log. Without a log it is the scheduler alone.
class RecordedScheduler : public Scheduler {
 public:
  // In the log, in the place of the device of a task that has none.
  static constexpr DeviceId kSwappedOut{UINT64_MAX};

  // `policy` names `placement` in the log; `log` outlives this.
  RecordedScheduler(const std::string& policy, std::unique_ptr<Placement> placement,
                    const std::vector<DeviceSpec>& devices, Options options = {}, InputLog* log = nullptr);

  void session_opened(SessionId session, JobId job, std::string model, Bytes budget, TimePoint now, UserId user = {},
                      const std::string& app = {});
  void session_closed(SessionId session, TimePoint now);
  void task_arrived(const TaskRequest& request, TimePoint now);
  void compute_grew(TaskId task, const ComputeNeed& need, TimePoint now);
  void extension_requested(TaskId task, Bytes more, TimePoint now);
  void memory_freed(TaskId task, Bytes less, TimePoint now);
  void task_ended(TaskId task, TimePoint now);
  // See Swapping.
  void swapped_out(TaskId task, TimePoint now);
  void resume_requested(TaskId task, TimePoint now);
  void resume_withdrawn(TaskId task, TimePoint now);
  void stays(TaskId task, const std::string& why, TimePoint now);
  // See Eager.
  void launched_eagerly(TaskId task, DeviceId device, Bytes on_host, TimePoint now);
  void promoted(TaskId task, Bytes bytes, TimePoint now);
  void returned_to_host(TaskId task, Bytes bytes, TimePoint now);
  void host_memory_freed(TaskId task, Bytes less, TimePoint now);
  void served(SessionId session, DeviceId device, const Service& since_last);
  // See Learning.
  void remember(const KnownApp& app);
  void computed(SessionId session, Duration since_last);
  void outside_memory(DeviceId device, Bytes used, TimePoint now);
  Status adopt(const TaskRequest& request, DeviceId device, TimePoint now);
  Status adopt_swapped(const TaskRequest& request, TimePoint now);
  Status adopt_assignment(SessionId session, uint32_t virtual_device, DeviceId device, TimePoint now);
  std::vector<Decision> decisions(TimePoint now);

 private:
  template <class... Values>
  void record(TimePoint at, std::string_view event, const Values&... values);

  InputLog* log_;
  TimePoint latest_{};  // of what has no time of its own
};

}  // namespace heddle::policy
