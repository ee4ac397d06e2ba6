#pragma once

#include <memory>
#include <vector>

#include "policy/placement/table.h"
#include "policy/scheduler.h"

// Small pools and requests for tests and benchmarks.
namespace heddle::policy {

constexpr Bytes gib(uint64_t count) {
  return {count * kGiB};
}

// A device like a P100: 56 SMs of 64 warps, 32 blocks, 65536 registers and 64 KiB of shared memory, 3584 warps in all.
inline DeviceSpec p100(uint64_t id, Bytes memory = gib(16), Bytes context = {}) {
  return {.id = {id},
          .name = "test " + std::to_string(id),
          .model = "p100",
          .memory = memory,
          .context_memory = context,
          .sms = 56,
          .sm = {.whole = {.blocks = 32, .warps = 64, .registers = 65536, .shared = 64 * kKiB}}};
}

inline std::vector<DeviceSpec> p100s(uint64_t count, Bytes memory = gib(16), Bytes context = {}) {
  std::vector<DeviceSpec> devices;
  for (uint64_t id = 0; id < count; ++id) devices.push_back(p100(id, memory, context));
  return devices;
}

// `blocks` blocks of eight warps.
constexpr ComputeNeed grid(uint64_t blocks) {
  return {blocks, 256, 32, {}};
}

constexpr TimePoint at(int64_t milliseconds) {
  return TimePoint(std::chrono::milliseconds(milliseconds));
}

inline std::unique_ptr<Placement> policy_named(const char* text) {
  return std::move(make_placement(text)).value();
}

}  // namespace heddle::policy
