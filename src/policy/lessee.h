#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"

namespace heddle::policy {

// Who may hold a device's lease: one ring, that is one virtual device of a session. A worker serves it.
struct Lessee {
  SessionId session;
  uint32_t virtual_device = 0;
  friend auto operator<=>(const Lessee&, const Lessee&) = default;
};

// What a job may have of a device, the same for all its lessees. A job's lessees share it.
struct Tenant {
  JobId job;
  // As core/device_share.h bounds them.
  double weight = 1;              // what counts is its ratio to the others'
  double request = 0, limit = 1;  // fractions of the device's time
  std::string app;                // what its programs are known by in the history
};

}  // namespace heddle::policy
