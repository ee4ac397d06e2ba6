#pragma once

#include "policy/placement/placement.h"
#include "policy/placement/seats.h"

namespace heddle::policy {

// Single assignment (CASE section IV): a job gets the first device that no other job has, for as long as it has a
// session; until one is free it waits, in order of arrival. As without heddle, the policy knows nothing of memory: the
// job has the whole device, and what does not fit beside its own is refused.
class Sa : public Placement {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Sa>(*this); }
  Scope scope() const override { return Scope::kSession; }
  bool memory_oblivious() const override { return true; }
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
  void assigned(const Request& request, DeviceId device) override { seats_.take(request, device); }
  std::optional<DeviceId> assignment(const Request& request) const override { return seats_.of(request); }
  void job_ended(JobId job, Duration /*life*/) override { seats_.leave(job); }

 private:
  Seats seats_;
};

}  // namespace heddle::policy
