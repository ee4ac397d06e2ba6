#include "client/stream/occupancy.h"

#include <algorithm>

#include "core/units.h"

namespace heddle::client {
namespace {

constexpr uint32_t kRegisterUnit = 256;  // registers are given out to warps in such pieces
constexpr uint32_t kWarpUnit = 4;        // an SM has four schedulers with a register file each
constexpr uint32_t kSharedUnit = 128;    // bytes

uint32_t limit_by_registers(const BlockNeed& need, uint32_t warps, const DeviceModel& model) {
  if (need.registers == 0) return model.max_blocks_per_sm;
  const uint32_t per_warp = static_cast<uint32_t>(round_up(need.registers * model.warp_size, kRegisterUnit));
  const uint32_t resident = model.registers_per_sm / per_warp / kWarpUnit * kWarpUnit;
  return resident / warps;
}

uint32_t limit_by_shared(const BlockNeed& need, const DeviceModel& model) {
  const uint64_t bytes = round_up(need.shared_bytes, kSharedUnit);
  return bytes == 0 ? model.max_blocks_per_sm : static_cast<uint32_t>(model.shared_bytes_per_sm / bytes);
}

}  // namespace

uint32_t blocks_per_sm(const BlockNeed& need, const DeviceModel& model) {
  if (need.threads == 0 || need.threads > model.max_threads_per_block) return 0;
  const uint32_t warps = (need.threads + model.warp_size - 1) / model.warp_size;
  return std::min({model.max_blocks_per_sm, model.max_warps_per_sm() / warps, limit_by_registers(need, warps, model),
                   limit_by_shared(need, model)});
}

uint64_t shared_bytes_left(const BlockNeed& need, uint32_t blocks, const DeviceModel& model) {
  if (blocks == 0) return 0;
  const uint64_t each = model.shared_bytes_per_sm / blocks / kSharedUnit * kSharedUnit;
  const uint64_t most =
      std::min<uint64_t>(each, std::max(model.shared_bytes_per_block_optin, model.shared_bytes_per_block));
  return most > need.shared_bytes ? most - need.shared_bytes : 0;
}

}  // namespace heddle::client
