#include "daemon/waits.h"

#include <utility>

namespace heddle::daemon {
namespace {

unsigned long number(DeviceId device) {
  return static_cast<unsigned long>(device.value);
}

// What tasks.cc holds back: over what the session may have on one device, the least of the largest device, the job's
// memory and the user's limit, before the worker has told of all that the program freed.
TaskWait for_frees(const Session& session, const VirtualDevice& device) {
  const auto next = session.segments.find(device.task->held_back.front());
  const Bytes more = next == session.segments.end() ? Bytes{} : next->second.bytes;
  return {"its own frees",
          stringf("needs %s more; this session has %s of %s on this device, until frees that are under way arrive",
                  to_string(more).c_str(), to_string(device.live).c_str(), to_string(session.budget).c_str())};
}

}  // namespace

std::string state_of(const DeviceState& device) {
  if (device.health == DeviceState::Health::kFaulted) return "faulted: its workers are being ended";
  if (device.health == DeviceState::Health::kTrial)
    return "in trial: programs are served apart from each other after a fault";
  if (device.starts.failed == 0) return "ok";
  return stringf("workers do not start (%u times): %s", device.starts.failed, device.starts.last_failure.c_str());
}

Waits::Waits(const Shared& shared, const policy::Scheduler& scheduler, const Leases& leases, uid_t viewer)
    : shared_(shared), scheduler_(scheduler), leases_(leases), viewer_(viewer) {}

// Hundreds may wait: they are copied for those alone who ask for a task.
const Waits::Line& Waits::line() const {
  if (line_) return *line_;
  line_.emplace();
  for (policy::WaitView& wait : scheduler_.waiting()) {
    const std::pair key(wait.session, wait.task);
    line_->insert_or_assign(key, std::move(wait));
  }
  return *line_;
}

// Hundreds may wait for one device: its lessees are gone through once.
const std::vector<Leases::Holder>& Waits::holders(DeviceId device) const {
  const auto known = holders_.find(device);
  return known != holders_.end() ? known->second : holders_.emplace(device, leases_.holders(device)).first->second;
}

std::optional<TaskWait> Waits::of(const Session& session, const VirtualDevice& device) const {
  const Task& task = *device.task;
  const auto wait = line().find({session.id, task.id});
  if (wait != line().end()) return in_line(device, wait->second);
  switch (task.state) {
    case TaskState::kNew:
    case TaskState::kArriving:
      return TaskWait{"memory", "memory that programs keep idle is being given back", task.arrived};
    case TaskState::kPlaced:
      if (task.serial == 0) return {};  // its program has not begun it
      return TaskWait{"a worker", "heddled was restarted, and the worker has not come back yet", {}};
    case TaskState::kStarting:
    case TaskState::kResuming:
      return for_worker(task);
    case TaskState::kSuspending:
    case TaskState::kSuspended:
    case TaskState::kSwappingOut:
    case TaskState::kSwapped:
      return for_resume(session, task);
    case TaskState::kSwappingIn:
      return TaskWait{"memory", stringf("its memory comes back to device %lu from swap space", number(task.device)),
                      task.granted};
    case TaskState::kPromoting:
      return TaskWait{"memory", stringf("memory of it on the host is copied to device %lu", number(task.device)),
                      task.granted};
    case TaskState::kRunning:
      break;
    default:
      return {};
  }
  if (!task.held_back.empty()) return for_frees(session, device);
  const auto lease = leases_.view(session, device);
  if (lease && lease->state == std::string_view("waits")) return for_lease(session, task, lease->since);
  return {};
}

// Until a person says so, or, where heddled itself had it leave its device, until its program has work.
TaskWait Waits::for_resume(const Session& session, const Task& task) const {
  const Job* job = shared_.registry.find_job(session.job);
  const bool by_person = task.gives_way == GivesWay::kNo || (job && job->suspended);
  const std::string why = by_person                                ? "its job is suspended"
                          : task.gives_way == GivesWay::kPromotion ? "memory of it on the host is to be promoted"
                          : task.gives_way == GivesWay::kDeadlock
                              ? "programs waited for each other, and this one gives way"
                              : "its program did nothing with its device, and others waited";
  if (task.state == TaskState::kSuspending) return {"its own work", why + "; what it has under way ends first", {}};
  const char* const memory = task.state == TaskState::kSwapped       ? ", and its memory lies in swap space"
                             : task.state == TaskState::kSwappingOut ? ", and its memory is leaving the device"
                                                                     : "";
  if (!by_person) return {"its program", why + memory + "; it goes on when its program uses the device", {}};
  return {"resume",
          stringf("%s%s: 'heddle resume %lu' lets it go on", why.c_str(), memory,
                  static_cast<unsigned long>(session.job.value)),
          {}};
}

TaskWait Waits::in_line(const VirtualDevice& device, const policy::WaitView& wait) const {
  std::string why = wait.why;
  if (has_device(device.task->state)) why = stringf("%s more: %s", to_string(wait.memory).c_str(), wait.why.c_str());
  return {policy::name_of(wait.cause), std::move(why), wait.since, wait.position};
}

TaskWait Waits::for_worker(const Task& task) const {
  const DeviceState& its = shared_.registry.devices[task.device.value];
  const bool starts = its.starts.failed == 0 && its.health == DeviceState::Health::kHealthy;
  std::string why = starts ? stringf("a worker of device %lu is starting", number(task.device))
                           : stringf("device %lu: %s", number(task.device), state_of(its).c_str());
  return {"a worker", std::move(why), task.granted};
}

// A device that is lent to nobody just now: the last is only just back, or those who have work may have no more of it.
TaskWait Waits::for_lease(const Session& session, const Task& task, TimePoint since) const {
  const char* const policy = shared_.config.dispatch.policy.c_str();
  const auto& of_device = holders(task.device);
  if (!of_device.empty()) {
    const auto& holder = of_device.front();
    return {"the lease",
            stringf("%s lends device %lu to %s (%s)", policy, number(task.device), named(holder.session).c_str(),
                    holder.view.state),
            since};
  }
  const Job* job = shared_.registry.find_job(session.job);
  std::string why = stringf("%s lends device %lu to nobody now", policy, number(task.device));
  if (job && job->tenant.limit < 1) why += stringf("; the job may have %g of it", job->tenant.limit);
  return {"the lease", std::move(why), since};
}

std::string Waits::named(SessionId holder) const {
  const Session* session = shared_.registry.find_session(holder);
  if (!session || (viewer_ != 0 && viewer_ != session->uid)) return "another user's job";
  return stringf("job %lu", static_cast<unsigned long>(session->job.value));
}

}  // namespace heddle::daemon
