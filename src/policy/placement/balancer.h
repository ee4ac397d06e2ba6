#pragma once

#include <vector>

#include "policy/placement/placement.h"
#include "policy/placement/seats.h"

namespace heddle::policy {

// What Rain's workload balancers have in common (section 4.1): an application is assigned to a device when it first
// uses one, and stays there until it ends.
//
// Left open by the paper, and chosen:
// - An application is a process with one cudaSetDevice. Here it is a job's virtual device, assigned with its first
// task.
// - The paper never looks at memory (its section 7), and programs that do not fit crash. Here a job is assigned where
// its
//   first task fits now, of several devices where it does, and later tasks wait for memory on their device.
// - "Local GPU first" is void: all devices are of one machine.
class Balancer : public Placement {
 public:
  Scope scope() const override { return Scope::kSession; }
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
  std::optional<DeviceId> assignment(const Request& request) const override { return seats_.of(request); }
  void assigned(const Request& request, DeviceId device) override { take(request, device); }
  void job_ended(JobId job, Duration /*life*/) override { seats_.leave(job); }

 protected:
  // Of `fitting`, by id, of which there is at least one.
  virtual Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const = 0;

  // False where the virtual device was assigned already.
  bool take(const Request& request, DeviceId device) { return seats_.take(request, device); }
  uint32_t jobs_on(DeviceId device) const { return seats_.taken(device); }

 private:
  Seats seats_;
};

}  // namespace heddle::policy
