#pragma once

#include "policy/placement/balancer.h"

namespace heddle::policy {

// GMin (Rain section 4.1): the device with the fewest jobs on it.
class GMin : public Balancer {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<GMin>(*this); }

 protected:
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;
};

}  // namespace heddle::policy
