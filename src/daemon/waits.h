#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/leases.h"
#include "daemon/shared.h"
#include "policy/scheduler.h"

namespace heddle::daemon {

// What a task waits for, as heddled knows it.
struct TaskWait {
  // The scarce thing in a word or two: one of policy/wait_cause.h, "a worker", "its own frees", "the lease", "its own
  // work", "its program" or "resume".
  std::string cause;
  std::string why;                 // with devices and numbers
  std::optional<TimePoint> since;  // none where heddled does not note it
  size_t position = 0;             // in the scheduler's line, from 1; 0: it does not stand there
};

// What each task waits for, for one answer to somebody who looks: the scheduler is asked once, at the first task.
// Other users' jobs are not named to him.
class Waits {
 public:
  Waits(const Shared& shared, const policy::Scheduler& scheduler, const Leases& leases, uid_t viewer);

  // The virtual device has a task. None where its program has all that it asked for: what then keeps it is its own.
  std::optional<TaskWait> of(const Session& session, const VirtualDevice& device) const;

 private:
  using Line = std::map<std::pair<SessionId, TaskId>, policy::WaitView>;

  const Line& line() const;
  const std::vector<Leases::Holder>& holders(DeviceId device) const;
  TaskWait in_line(const VirtualDevice& device, const policy::WaitView& wait) const;
  TaskWait for_worker(const Task& task) const;
  TaskWait for_resume(const Session& session, const Task& task) const;
  TaskWait for_lease(const Session& session, const Task& task, TimePoint since) const;
  std::string named(SessionId holder) const;

  const Shared& shared_;
  const policy::Scheduler& scheduler_;
  const Leases& leases_;
  uid_t viewer_;
  mutable std::optional<Line> line_;                                 // the scheduler's, once a task was asked for
  mutable std::map<DeviceId, std::vector<Leases::Holder>> holders_;  // of the devices that somebody waits to be lent
};

// Why nobody is served on the device, or "ok".
std::string state_of(const DeviceState& device);

}  // namespace heddle::daemon
