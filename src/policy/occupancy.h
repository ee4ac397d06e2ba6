#pragma once

#include <optional>

#include "core/occupancy.h"
#include "policy/device_spec.h"
#include "policy/task.h"

namespace heddle::policy {

// What one block of `need` takes of an SM of `device`; nothing where there are no blocks, or where a block is larger
// than an SM. Such a launch is an error that the device itself reports, so it loads no SM and is not held back here.
std::optional<SmShare> block_share(const ComputeNeed& need, const DeviceSpec& device);

// Blocks of `need` that an empty `device` holds at once, and their warps. A grid larger than the device counts as what
// the device can hold: the hardware deals out the rest as blocks end.
struct Resident {
  uint64_t blocks = 0;
  uint64_t warps = 0;
};
Resident resident(const ComputeNeed& need, const DeviceSpec& device);

}  // namespace heddle::policy
