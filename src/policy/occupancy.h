#pragma once

#include <cstdint>
#include <optional>

#include "policy/device_spec.h"
#include "policy/task.h"

namespace heddle::policy {

// What an SM has to give, or what one block takes of it.
struct SmRoom {
  uint32_t blocks = 0;
  uint32_t warps = 0;
  uint32_t registers = 0;
  uint32_t shared = 0;  // bytes
  friend bool operator==(const SmRoom&, const SmRoom&) = default;
};

SmRoom empty_sm(const DeviceSpec& device);

// What one block of `need` takes of an SM of `device`; nothing where there are no blocks, or where a block is larger
// than an SM. Such a launch is an error that the device itself reports, so it loads no SM and is not held back here.
std::optional<SmRoom> block_room(const ComputeNeed& need, const DeviceSpec& device);

// How many blocks of size `block` fit into `room` at once.
uint32_t blocks_that_fit(const SmRoom& room, const SmRoom& block);

// Blocks of `need` that an empty `device` holds at once, and their warps. A grid larger than the device counts as what
// the device can hold: the hardware deals out the rest as blocks end.
struct Resident {
  uint64_t blocks = 0;
  uint64_t warps = 0;
};
Resident resident(const ComputeNeed& need, const DeviceSpec& device);

}  // namespace heddle::policy
