#pragma once

#include "policy/placement/placement.h"

namespace heddle::policy {

// CASE section III, Alg. 3 as its text intends it (the listing's comparison is the other way round): of the devices
// whose free memory holds the task, the one with the fewest warps in use; ties go to the lower id. Memory is a hard
// constraint, compute a soft one: it may slow a task down, never make it fail.
//
// Work: one look at each device of the model.
class MgbWarps : public Placement {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<MgbWarps>(*this); }
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
};

}  // namespace heddle::policy
