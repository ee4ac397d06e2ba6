#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "policy/pool.h"
#include "policy/service.h"
#include "policy/wait_cause.h"

namespace heddle::policy {

class History;
struct KnownApp;

// Where a request may go now, and why there.
struct Placed {
  DeviceId device;
  std::string reason;
};
// Nowhere yet, and what it waits for.
struct NotNow {
  std::string reason;
  WaitCause cause = WaitCause::kMemory;
};
using Answer = std::variant<Placed, NotNow>;

enum class Scope {
  kTask,     // each task is placed by itself
  kSession,  // a job's virtual device is assigned at its first use, for as long as the job has a session
};

// A placement policy: picks a device for a request. place() only answers; what then happens comes back through the
// events below it, in the same order in every run, so a policy's state is a function of the events. No clock, no I/O.
class Placement {
 public:
  virtual ~Placement() = default;
  // A copy with the same state: the search for deadlocks tries out what would happen.
  virtual std::unique_ptr<Placement> clone() const = 0;

  virtual Scope scope() const { return Scope::kTask; }
  // Such a policy never looks at memory: a request over what is free on its device is refused at once.
  virtual bool memory_oblivious() const { return false; }
  // The devices that the policy uses at all for tasks of `model`, by id. A request that none of them could ever hold is
  // refused.
  virtual std::span<const DeviceId> candidates(size_t model, const Pool& pool) const { return pool.devices_of(model); }

  // The device that the request's virtual device is assigned to (kSession).
  virtual std::optional<DeviceId> assignment(const Request&) const { return {}; }

  // Whether requests that differ only in task, session, job and virtual device wait alike, for the same reason, where
  // their sessions and jobs have nothing yet: where one must wait, the scheduler then asks for no other. It keeps a
  // decision cheap where thousands wait.
  virtual bool waits_alike() const { return false; }

  // Must not place on `request.closed`, and, unless memory_oblivious, only where pool.fits(request, device). On an idle
  // pool, a request that a candidate could hold must be placed.
  virtual Answer place(const Request& request, const Pool& pool) const = 0;

  // Comes once, before anything else.
  virtual void opened(const Pool&) {}
  // The job's first session began; `app` is what jobs of its kind are known by.
  virtual void job_opened(JobId, const std::string& /*app*/) {}
  // The virtual device of the request was assigned (kSession; said again for each session of the job that uses it).
  virtual void assigned(const Request&, DeviceId) {}
  // What the job has used of a device since that was said last: while it runs, and once more before it ends.
  virtual void served(JobId, DeviceId, const Service& /*since_last*/) {}
  // The user and system time that the job's programs have used since that was said last. Not said where nobody looks.
  virtual void computed(JobId, Duration /*since_last*/) {}
  // The job's last session has ended, `life` after the first began; zero where only that is tried out.
  virtual void job_ended(JobId, Duration /*life*/) {}
  // What is known of applications (history.h), where the policy learns: null where it does not. What was known before
  // it was made is said ahead of all jobs.
  virtual const History* history() const { return nullptr; }
  virtual void remember(const KnownApp&) {}
  // A task began on a device, changed its compute need, ended.
  virtual void task_began(TaskId, const ComputeNeed&, DeviceId, const Pool&) {}
  virtual void compute_changed(TaskId, const ComputeNeed&, const Pool&) {}
  virtual void task_ended(TaskId) {}
};

}  // namespace heddle::policy
