#pragma once

#include "policy/placement/placement.h"

namespace heddle::policy {

// schedGPU as CASE compares against it (section V-E): one device, the first of the model, and memory as the only
// criterion. A task waits until the device has its memory.
class SchedGpu : public Placement {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<SchedGpu>(*this); }
  std::span<const DeviceId> candidates(size_t model, const Pool& pool) const override;
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
};

}  // namespace heddle::policy
