#pragma once

#include "policy/placement/rtf.h"

namespace heddle::policy {

// GPU utilization feedback (Rain section 4.3): applications that use a device much of their time are kept apart. The
// device where the utilizations of the jobs assigned there, and the new one's, add up to least; of equals as rtf.
// gwtmin where nothing is known of the application.
//
// The paper has two denominators for an application's utilization: its total execution time, and its system and user
// time. Here it is the time for which it was there, because programs sleep while they wait for their device. Jobs of
// applications without history count as the mean of all.
class Guf : public Rtf {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Guf>(*this); }

 protected:
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;
};

}  // namespace heddle::policy
