#pragma once

#include <cstdint>

#include "core/device_model.h"
#include "core/units.h"

// How many blocks of a kernel an SM holds: CUDA's rules (Programming Guide, "Hardware Multithreading"; the occupancy
// calculator). One calculation for what programs are told, what policies count and what the software device does.
namespace heddle {

inline constexpr uint32_t kRegisterFiles = 4;       // of an SM, one for each scheduler
inline constexpr uint32_t kThreadRegisterStep = 8;  // registers are given to a warp in pieces of 256

// What one SM has, or what one block takes of it.
struct SmShare {
  uint32_t blocks = 0;
  uint32_t warps = 0;
  uint32_t registers = 0;
  uint32_t shared = 0;  // bytes
  friend bool operator==(const SmShare&, const SmShare&) = default;
};

// The properties of a device that decide how many blocks one of its SMs holds.
struct SmModel {
  SmShare whole;
  uint32_t warp_size = 32;
  uint32_t reserved_shared_bytes = 0;  // of each block, by the system
  friend bool operator==(const SmModel&, const SmModel&) = default;
};
SmModel sm_of(const DeviceModel& model);

// A block of a kernel.
struct BlockNeed {
  uint64_t threads = 0;
  uint32_t registers_per_thread = 0;  // 0: unknown, no limit
  uint64_t shared_bytes = 0;          // static and dynamic
};

// What a block takes of an SM. Warps count as whole ones. Registers are allocated to a warp in pieces of 256, and each
// of the four register files serves a quarter of the warps. Shared memory is allocated in pieces of 128 bytes. Shares
// of different kernels can be added, and as many shares fit as CUDA's calculator says; a block larger than the SM has
// a share larger than the SM.
SmShare share_of(const BlockNeed& need, const SmModel& sm);

// How many blocks of that share fit into `room` at once.
uint32_t fitting(const SmShare& room, const SmShare& block);

// How many blocks of `need` an empty SM holds; 0 if the device cannot run such a block.
uint32_t blocks_per_sm(const BlockNeed& need, const DeviceModel& model);

// Whether the registers of one block fit: the SM spreads the block's warps evenly over its register files.
inline bool registers_fit(uint32_t per_thread, uint64_t threads, const DeviceModel& model) {
  return round_up(per_thread, kThreadRegisterStep) * round_up(threads, uint64_t{kRegisterFiles} * model.warp_size) <=
         model.registers_per_block;
}
// The most registers per thread for which registers_fit() holds in a block of `threads`, and the most threads of a
// block for a given number of registers per thread (0: unknown, no limit).
uint32_t most_registers(uint64_t threads, const DeviceModel& model);
uint32_t most_threads(uint32_t registers_per_thread, const DeviceModel& model);

// `room` less `block`, nothing falling below zero; and together, nothing overflowing.
SmShare without(const SmShare& room, const SmShare& block);
SmShare together(const SmShare& a, const SmShare& b);

// Dynamic shared memory that each of `blocks` blocks of `need` (its static shared memory) may have on one SM, in bytes.
uint64_t shared_bytes_left(const BlockNeed& need, uint32_t blocks, const DeviceModel& model);

}  // namespace heddle
