#pragma once

#include "core/device_model.h"

namespace heddle::software {

// For tests: a device small enough to reason about. Two SMs of 8 warps and 4 blocks; an SM issues 1000 warp
// instructions a millisecond.
inline DeviceModel small_model() {
  DeviceModel model;
  model.sms = 2;
  model.max_threads_per_sm = 256;
  model.max_threads_per_block = 256;
  model.max_blocks_per_sm = 4;
  model.registers_per_sm = 65536;
  model.shared_bytes_per_sm = 65536;
  model.clock_khz = 1000;
  model.issue_per_cycle = 1;
  model.memory_bytes_per_s = 2'000'000;
  model.copy_bytes_per_s = 1'000'000;
  model.launch_latency_ns = 5000;
  model.slowdown = 1;
  model.copy_slowdown = 1;
  return model;
}

}  // namespace heddle::software
