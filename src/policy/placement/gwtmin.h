#pragma once

#include "policy/placement/balancer.h"

namespace heddle::policy {

// Weighted GMin (Rain section 4.1): the device that has the fewest jobs for its capability, the new one included. Of
// equals the more capable one.
//
// The paper's weights are "calculated during initialization"; here they are DeviceSpec::weight. Jobs are only assigned
// to devices of their model, so the policy differs from gmin where devices of a model differ: in slowdown, or in SMs.
class GWtMin : public Balancer {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<GWtMin>(*this); }

 protected:
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;
};

}  // namespace heddle::policy
