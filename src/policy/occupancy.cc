#include "policy/occupancy.h"

#include <algorithm>

namespace heddle::policy {

std::optional<SmShare> block_share(const ComputeNeed& need, const DeviceSpec& device) {
  if (need.blocks == 0 || need.threads_per_block == 0 || device.sm.whole.blocks == 0) return {};
  const SmShare share =
      share_of({need.threads_per_block, need.registers_per_thread, need.shared_per_block.value}, device.sm);
  if (fitting(device.sm.whole, share) == 0) return {};
  return share;
}

Resident resident(const ComputeNeed& need, const DeviceSpec& device) {
  const auto share = block_share(need, device);
  if (!share) return {};
  const uint64_t at_once = uint64_t{fitting(device.sm.whole, *share)} * device.sms;
  const uint64_t blocks = std::min(need.blocks, at_once);
  return {blocks, blocks * share->warps};
}

}  // namespace heddle::policy
