#pragma once

#include "daemon/mps.h"
#include "daemon/registry.h"

namespace heddle::daemon {

// Whether one program's fault is every program's there.
inline bool shares_faults(const DeviceState& device, const Mps& mps) {
  return device.config.shared_faults || mps.serves(device.id);
}

// Whoever is served there now is tried alone (shared_faults.h), by a worker of which a kernel's fault is no client's.
inline bool tries_outside_mps(const DeviceState& device, const Mps& mps) {
  return device.health == DeviceState::Health::kTrial && mps.serves(device.id);
}

inline bool is_mps_client(const Worker& worker, const Mps& mps) {
  return !worker.outside_mps && mps.serves(worker.device);
}

}  // namespace heddle::daemon
