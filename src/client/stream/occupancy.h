#pragma once

#include <cstdint>

#include "core/device_model.h"
#include "image/module_info.h"

// How many blocks of a kernel one SM holds: CUDA's rules (Programming Guide, "Hardware Multithreading").
namespace heddle::client {

struct BlockNeed {
  uint32_t threads = 0;
  uint32_t registers = 0;     // per thread; 0: unknown, no limit
  uint64_t shared_bytes = 0;  // static and dynamic
};

// 0 where not even one block fits.
uint32_t blocks_per_sm(const BlockNeed& need, const DeviceModel& model);

// Dynamic shared memory that each of `blocks` blocks of `need` (its static shared memory) may have on one SM.
uint64_t shared_bytes_left(const BlockNeed& need, uint32_t blocks, const DeviceModel& model);

}  // namespace heddle::client
