#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/occupancy.h"
#include "core/units.h"

namespace heddle::policy {

// What placement knows of a device. Fixed for the life of a pool.
struct DeviceSpec {
  DeviceId id;  // its index in the pool, from 0
  std::string name;
  std::string model;     // tasks go only to devices of the model that they ask for
  Bytes memory;          // what the ledger may promise
  Bytes context_memory;  // charged for each worker that serves on the device; 0 for software devices
  uint32_t sms = 0;
  SmModel sm;
  uint32_t weight = 1000;    // its speed, in thousandths of the fastest device's of its model
  uint32_t max_clients = 0;  // workers at once; 0: unlimited
};

}  // namespace heddle::policy
