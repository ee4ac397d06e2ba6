#pragma once

#include <map>

#include "policy/placement/placement.h"
#include "policy/placement/seats.h"

namespace heddle::policy {

// Core-to-GPU (CASE section IV): jobs are assigned to devices round robin, at most `ratio` to a device; beyond that
// they wait. The policy knows nothing of memory, on purpose: a request over what is free on its device fails, as in the
// paper. A job that uses several virtual devices counts once for each.
class Cg : public Placement {
 public:
  explicit Cg(uint32_t ratio) : ratio_(ratio) {}
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Cg>(*this); }
  Scope scope() const override { return Scope::kSession; }
  bool memory_oblivious() const override { return true; }
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
  void assigned(const Request& request, DeviceId device) override;
  std::optional<DeviceId> assignment(const Request& request) const override { return seats_.of(request); }
  void job_ended(JobId job, Duration /*life*/) override { seats_.leave(job); }

 private:
  uint32_t ratio_;
  Seats seats_;
  std::map<size_t, DeviceId> last_;  // by model: the device assigned last, behind which the round goes on
};

}  // namespace heddle::policy
