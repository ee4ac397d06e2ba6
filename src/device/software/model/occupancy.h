#pragma once

#include <cstdint>

#include "core/device_model.h"

namespace heddle::software {

// What one SM has, or what one block takes of it.
struct SmShare {
  uint32_t blocks = 0;
  uint32_t warps = 0;
  uint32_t registers = 0;
  uint32_t shared = 0;  // bytes
  friend bool operator==(const SmShare&, const SmShare&) = default;
};

// What a block takes, by the rules of CUDA's occupancy calculator: whole warps, registers by the warp in steps of 256,
// shared memory in steps of 128 bytes.
struct BlockNeed {
  uint64_t threads = 0;
  uint32_t registers_per_thread = 0;
  uint64_t shared_bytes = 0;  // static and dynamic
};

// The whole of an SM of that model.
SmShare whole_sm(const DeviceModel& model);
SmShare share_of(const BlockNeed& need, const DeviceModel& model);

// How many blocks of that size fit into `room` at once.
uint32_t fitting(const SmShare& room, const SmShare& block);

// `room` less `block`, nothing falling below zero; and together, nothing overflowing.
SmShare without(const SmShare& room, const SmShare& block);
SmShare together(const SmShare& a, const SmShare& b);

}  // namespace heddle::software
