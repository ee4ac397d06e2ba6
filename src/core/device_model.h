#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace heddle {

enum class DeviceKind : uint32_t { kSoftware = 1, kCuda = 2 };
// How the workers of one device share it: blocks of all of them at once, or the whole device in turns.
enum class Sharing : uint32_t { kConcurrent = 0, kTimeSliced = 1 };

// What one GPU of the pool is: its resources as CUDA reports them, and for a software device the speed that it keeps.
// Plain data; it crosses process boundaries as it stands.
struct DeviceModel {
  char name[64] = {};   // as cudaDeviceProp::name shows it
  char model[32] = {};  // "P100": sessions move only between devices of one model
  DeviceKind kind = DeviceKind::kSoftware;
  Sharing sharing = Sharing::kConcurrent;
  uint64_t memory_bytes = 0;
  uint64_t context_bytes = 0;  // device memory of one worker's context
  uint32_t sms = 0;
  uint32_t max_threads_per_sm = 0, max_blocks_per_sm = 0, registers_per_sm = 0, shared_bytes_per_sm = 0;
  uint32_t shared_bytes_per_block = 49152, shared_bytes_per_block_optin = 0;
  uint32_t shared_bytes_reserved_per_block = 0;  // by the system, beside what the block has
  uint32_t max_threads_per_block = 1024, warp_size = 32, registers_per_block = 65536;
  uint32_t capability_major = 9, capability_minor = 0;
  uint32_t clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0, l2_bytes = 0;
  uint32_t issue_per_cycle = 0;     // warp-instructions that one SM can issue a cycle
  uint32_t copy_engines = 2;        // one each way
  uint64_t memory_bytes_per_s = 0;  // of device memory
  uint64_t copy_bytes_per_s = 0;    // of one copy engine, pinned host memory
  uint32_t launch_latency_ns = 0;   // from issue to the first block, on the real thing
  uint32_t pci_bus = 0;
  // A software device is that GPU slowed by these factors (1 = the real thing's speed). 0: no pacing at all, as fast
  // as the host can; then no timing means anything.
  double slowdown = 0;       // SM clock, device memory bandwidth, launch latency
  double copy_slowdown = 0;  // copy engines

  uint32_t max_warps_per_sm() const { return max_threads_per_sm / warp_size; }
};

// The presets: "P100", "V100", "H200". Resources of the real GPU, slowdown 1 each, software kind. An unknown name is an
// error that lists them.
Result<DeviceModel> device_preset(std::string_view name);
std::vector<std::string_view> device_preset_names();

}  // namespace heddle
