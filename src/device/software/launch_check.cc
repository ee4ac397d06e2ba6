#include "device/software/launch_check.h"

#include <algorithm>

namespace heddle::software {
namespace {

// CUDA's own limits, the same on every device that it supports.
constexpr uint64_t kMostGridX = 0x7fffffff, kMostGridYZ = 65535;
constexpr uint64_t kMostBlockXY = 1024, kMostBlockZ = 64;

Status at_most(const ProgramKernel& kernel, const char* what, uint64_t value, uint64_t limit) {
  if (value >= 1 && value <= limit) return {};
  return fail(ErrorCode::kInvalidArgument, "launch of '%s': %s is %llu, it must be 1 to %llu",
              kernel.code->name.c_str(), what, static_cast<unsigned long long>(value),
              static_cast<unsigned long long>(limit));
}

Status check_dimensions(const ProgramKernel& kernel, const device::LaunchConfig& config, const DeviceModel& model) {
  uint64_t most_threads = model.max_threads_per_block;
  if (kernel.code->max_threads) most_threads = std::min<uint64_t>(most_threads, kernel.code->max_threads);
  HEDDLE_TRY(at_most(kernel, "grid x", config.grid.x, kMostGridX));
  HEDDLE_TRY(at_most(kernel, "grid y", config.grid.y, kMostGridYZ));
  HEDDLE_TRY(at_most(kernel, "grid z", config.grid.z, kMostGridYZ));
  HEDDLE_TRY(at_most(kernel, "block x", config.block.x, kMostBlockXY));
  HEDDLE_TRY(at_most(kernel, "block y", config.block.y, kMostBlockXY));
  HEDDLE_TRY(at_most(kernel, "block z", config.block.z, kMostBlockZ));
  return at_most(kernel, "threads per block", config.block.count(), most_threads);
}

// How many registers a thread is taken to have. Where there is no machine code that is an estimate, and an estimate
// must keep no block out: not one that fits only with fewer (ptxas, which tries hard, may well have made it fit), and
// not one of a cooperative launch, whose blocks are as many as the runtime, which knows machine code only, said would
// fit.
uint32_t registers_per_thread(const ProgramKernel& kernel, const device::LaunchConfig& config,
                              const DeviceModel& model) {
  if (!kernel.registers_estimated) return kernel.registers;
  if (config.cooperative) return 0;
  return std::min(kernel.registers, most_registers(config.block.count(), model));
}

}  // namespace

Result<SmShare> check_launch(const ProgramKernel& kernel, const device::LaunchConfig& config,
                             const DeviceModel& model) {
  HEDDLE_TRY(check_dimensions(kernel, config, model));
  if (config.parameters.size() < kernel.code->parameter_bytes)
    return fail(ErrorCode::kInvalidArgument, "launch of '%s': %zu bytes of parameters, it takes %u",
                kernel.code->name.c_str(), config.parameters.size(), kernel.code->parameter_bytes);

  uint64_t shared = uint64_t{kernel.code->dynamic_shared_offset} + config.dynamic_shared_bytes;
  uint64_t most_shared = std::max(model.shared_bytes_per_block, model.shared_bytes_per_block_optin);
  if (shared > most_shared)
    return fail(ErrorCode::kLimitExceeded, "launch of '%s': %llu bytes of shared memory per block, the device has %llu",
                kernel.code->name.c_str(), static_cast<unsigned long long>(shared),
                static_cast<unsigned long long>(most_shared));

  const SmModel sm = sm_of(model);
  const uint32_t registers = registers_per_thread(kernel, config, model);
  const SmShare share = share_of({config.block.count(), registers, shared}, sm);
  if (!registers_fit(registers, config.block.count(), model) || fitting(sm.whole, share) == 0)
    return fail(ErrorCode::kLimitExceeded,
                "launch of '%s': a block of %u warps with %u registers a thread does not fit an SM",
                kernel.code->name.c_str(), share.warps, registers);
  return share;
}

}  // namespace heddle::software
