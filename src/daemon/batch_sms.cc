#include "daemon/batch_sms.h"

namespace heddle::daemon {

Status check_batch_sms(const Shared& shared, const Mps& mps) {
  if (!shared.config.dispatch.bounds_batch) return {};
  for (const DeviceState& device : shared.registry.devices) {
    const DeviceModel& model = device.config.model;
    const bool is_gpu = model.kind == DeviceKind::kCuda;
    if (is_gpu ? mps.serves(device.id) && device.config.mps == MpsMode::kOn : model.sharing == Sharing::kConcurrent)
      continue;
    return fail(ErrorCode::kInvalidArgument,
                "dispatch.policy: %s leaves a part of the SMs to requests, for which a device has to run programs "
                "together, and device %lu (%.63s) runs them in time slices: %s, or take another policy",
                shared.config.dispatch.policy.c_str(), static_cast<unsigned long>(device.id.value), model.name,
                is_gpu ? "have it shared through MPS ([[gpu]] mps = \"on\")" : "say sharing = \"concurrent\" of it");
  }
  return {};
}

}  // namespace heddle::daemon
