#pragma once

#include "policy/deadline/deadline.h"

namespace heddle::policy {

// No deadlines: whoever has waited longest goes first, whatever its class, and nothing is revoked. What the deadline
// policies are compared with.
class Fifo : public Deadline {
 public:
  explicit Fifo(const std::vector<DeviceId>& devices) : Deadline(devices, Revocation::kOff, false) {}
};

}  // namespace heddle::policy
