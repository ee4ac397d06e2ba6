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

// What of a device decides.
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

// What a block takes: whole warps; registers by the warp, in pieces of 256, of register files that serve a quarter of
// the warps each; shared memory in pieces of 128 bytes. So many of a resource that as many such blocks fit as CUDA
// says, and that shares of different kernels can be added up. A block larger than the SM takes more than all of it.
SmShare share_of(const BlockNeed& need, const SmModel& sm);

// How many blocks of that share fit into `room` at once.
uint32_t fitting(const SmShare& room, const SmShare& block);

// Of a whole SM; 0 for a block that the device does not run.
uint32_t blocks_per_sm(const BlockNeed& need, const DeviceModel& model);

// Whether the registers of one block fit: its warps come to each of the register files in equal numbers.
inline bool registers_fit(uint32_t per_thread, uint64_t threads, const DeviceModel& model) {
  return round_up(per_thread, kThreadRegisterStep) * round_up(threads, uint64_t{kRegisterFiles} * model.warp_size) <=
         model.registers_per_block;
}
// How many registers a thread may have in a block of so many threads, and threads a block of so many registers each (0:
// unknown, no limit), for them to fit.
uint32_t most_registers(uint64_t threads, const DeviceModel& model);
uint32_t most_threads(uint32_t registers_per_thread, const DeviceModel& model);

// `room` less `block`, nothing falling below zero; and together, nothing overflowing.
SmShare without(const SmShare& room, const SmShare& block);
SmShare together(const SmShare& a, const SmShare& b);

// Dynamic shared memory that each of `blocks` blocks of `need` (its static shared memory) may have on one SM, in bytes.
uint64_t shared_bytes_left(const BlockNeed& need, uint32_t blocks, const DeviceModel& model);

}  // namespace heddle
