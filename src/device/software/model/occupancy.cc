#include "device/software/model/occupancy.h"

#include <algorithm>
#include <limits>

#include "core/units.h"

namespace heddle::software {
namespace {

constexpr uint64_t kRegisterStep = 256, kSharedStep = 128;

// A need beyond 32 bits fits nowhere anyway.
uint32_t narrow(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

uint32_t less(uint32_t a, uint32_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

SmShare whole_sm(const DeviceModel& model) {
  return {model.max_blocks_per_sm, model.max_warps_per_sm(), model.registers_per_sm, model.shared_bytes_per_sm};
}

SmShare share_of(const BlockNeed& need, const DeviceModel& model) {
  uint64_t warps = (need.threads + model.warp_size - 1) / model.warp_size;
  uint64_t registers_per_warp = round_up(uint64_t{need.registers_per_thread} * model.warp_size, kRegisterStep);
  return {1, narrow(warps), narrow(warps * registers_per_warp), narrow(round_up(need.shared_bytes, kSharedStep))};
}

uint32_t fitting(const SmShare& room, const SmShare& block) {
  auto times = [](uint32_t have, uint32_t each) { return each ? have / each : std::numeric_limits<uint32_t>::max(); };
  return std::min({times(room.blocks, block.blocks), times(room.warps, block.warps),
                   times(room.registers, block.registers), times(room.shared, block.shared)});
}

SmShare without(const SmShare& room, const SmShare& block) {
  return {less(room.blocks, block.blocks), less(room.warps, block.warps), less(room.registers, block.registers),
          less(room.shared, block.shared)};
}

SmShare together(const SmShare& a, const SmShare& b) {
  return {narrow(uint64_t{a.blocks} + b.blocks), narrow(uint64_t{a.warps} + b.warps),
          narrow(uint64_t{a.registers} + b.registers), narrow(uint64_t{a.shared} + b.shared)};
}

}  // namespace heddle::software
