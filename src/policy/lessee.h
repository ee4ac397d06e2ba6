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

inline constexpr double kLeastWeight = 0.001;  // weights count in such steps
inline constexpr double kLeastLimit = 0.01;    // with less, one kernel may be all that a job has in minutes

// What a job may have of a device, the same for all its lessees. A job's lessees share it.
struct Tenant {
  JobId job;
  double weight = 1;              // at least kLeastWeight; what counts is its ratio to the others'
  double request = 0, limit = 1;  // fractions of the device's time, 0 <= request <= limit <= 1, kLeastLimit <= limit
  std::string app;                // what its programs are known by in the history
};

}  // namespace heddle::policy
