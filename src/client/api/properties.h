#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "client/cuda_types.h"
#include "core/device_model.h"

namespace heddle::client {

// cudaDeviceGetAttribute, by the attribute's documented number; nullopt for one that does not exist.
// `managed_on_device`: as Session has it.
std::optional<int> device_attribute(int attribute, const DeviceModel& model, bool managed_on_device);

// Heddle's own, the same in every process: programs compare them to tell devices apart.
std::array<uint32_t, 4> device_uuid(const DeviceModel& model, int index);

}  // namespace heddle::client
