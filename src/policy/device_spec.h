#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/units.h"

namespace heddle::policy {

// What placement knows of a device. Fixed for the life of a pool.
struct DeviceSpec {
  DeviceId id;  // its index in the pool, from 0
  std::string name;
  std::string model;     // tasks go only to devices of the model that they ask for
  Bytes memory;          // what the ledger may promise
  Bytes context_memory;  // charged for each worker bound to the device; 0 for software devices
  uint32_t sms = 0;
  uint32_t max_warps_per_sm = 0;
  uint32_t max_blocks_per_sm = 0;
  uint32_t registers_per_sm = 0;
  Bytes shared_per_sm;
  uint32_t warp_size = 32;
  uint32_t max_clients = 0;  // workers at once; 0: unlimited
};

}  // namespace heddle::policy
