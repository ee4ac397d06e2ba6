#pragma once

#include <map>

#include "policy/placement/balancer.h"

namespace heddle::policy {

// Global round robin (Rain section 4.1): jobs are assigned to devices in turn. Devices without the memory are passed
// over.
class Grr : public Balancer {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Grr>(*this); }
  void assigned(const Request& request, DeviceId device) override;

 protected:
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;

 private:
  std::map<size_t, DeviceId> last_;  // by model: the device assigned to last, behind which the round goes on
};

}  // namespace heddle::policy
