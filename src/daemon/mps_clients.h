#pragma once

#include <algorithm>

#include "daemon/mps.h"
#include "daemon/registry.h"

namespace heddle::daemon {

// Whether one program's fault is every program's there.
inline bool shares_faults(const DeviceState& device, const Mps& mps) {
  return device.config.shared_faults || mps.serves(device.id);
}

// Whether the virtual device is tried (shared_faults.h) by a worker of which a kernel's fault is no client's.
inline bool is_tried_outside_mps(const DeviceState& device, const Mps& mps, std::pair<SessionId, uint32_t> who) {
  return device.health == DeviceState::Health::kTrial && mps.serves(device.id) && device.on_trial.contains(who);
}

// Whether it serves a program that was tried, did not fault, and is to go on under MPS.
inline bool is_settled_outside_mps(const Worker& worker, const DeviceState& device) {
  return worker.outside_mps && worker.state == Worker::State::kBound && worker.device == device.id &&
         worker.last_fault.empty() && !device.on_trial.contains({worker.session, worker.virtual_device});
}

inline size_t wanting_outside_mps(const DeviceState& device, const Mps& mps) {
  return static_cast<size_t>(std::count_if(device.wanting.begin(), device.wanting.end(),
                                           [&](const auto& who) { return is_tried_outside_mps(device, mps, who); }));
}

inline bool is_mps_client(const Worker& worker, const Mps& mps) {
  return !worker.outside_mps && mps.serves(worker.device);
}

}  // namespace heddle::daemon
