#include "policy/occupancy.h"

#include <algorithm>
#include <limits>

namespace heddle::policy {

SmRoom empty_sm(const DeviceSpec& device) {
  const uint64_t shared = std::min<uint64_t>(device.shared_per_sm.value, std::numeric_limits<uint32_t>::max());
  return {device.max_blocks_per_sm, device.max_warps_per_sm, device.registers_per_sm, static_cast<uint32_t>(shared)};
}

std::optional<SmRoom> block_room(const ComputeNeed& need, const DeviceSpec& device) {
  const SmRoom sm = empty_sm(device);
  if (need.blocks == 0 || need.threads_per_block == 0 || sm.blocks == 0 || device.warp_size == 0) return {};
  const uint64_t warps = (uint64_t{need.threads_per_block} + device.warp_size - 1) / device.warp_size;
  if (warps > sm.warps || need.shared_per_block.value > sm.shared) return {};
  const uint64_t lanes = warps * device.warp_size;
  if (need.registers_per_thread > sm.registers / lanes) return {};
  return SmRoom{1, static_cast<uint32_t>(warps), static_cast<uint32_t>(need.registers_per_thread * lanes),
                static_cast<uint32_t>(need.shared_per_block.value)};
}

uint32_t blocks_that_fit(const SmRoom& room, const SmRoom& block) {
  uint32_t fit = std::min(room.blocks, room.warps / block.warps);
  if (block.registers != 0) fit = std::min(fit, room.registers / block.registers);
  if (block.shared != 0) fit = std::min(fit, room.shared / block.shared);
  return fit;
}

Resident resident(const ComputeNeed& need, const DeviceSpec& device) {
  const auto block = block_room(need, device);
  if (!block) return {};
  const uint64_t at_once = uint64_t{blocks_that_fit(empty_sm(device), *block)} * device.sms;
  const uint64_t blocks = std::min(need.blocks, at_once);
  return {blocks, blocks * block->warps};
}

}  // namespace heddle::policy
