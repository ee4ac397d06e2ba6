#include "core/occupancy.h"

#include <algorithm>
#include <limits>

#include "core/units.h"

namespace heddle {
namespace {

constexpr uint64_t kSharedStep = 128;
constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();

// A need beyond 32 bits fits nowhere anyway.
uint32_t narrow(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, kMost));
}

uint32_t less(uint32_t a, uint32_t b) {
  return a > b ? a - b : 0;
}

// Each register file holds whole warps, so a warp takes as much as leaves room for exactly those.
uint64_t registers_of_warp(uint32_t per_thread, const SmModel& sm) {
  const uint64_t given = round_up(per_thread, kThreadRegisterStep) * sm.warp_size;
  if (given == 0) return 0;
  const uint64_t resident = sm.whole.registers / given / kRegisterFiles * kRegisterFiles;
  return resident == 0 ? kMost : sm.whole.registers / resident;
}

}  // namespace

SmModel sm_of(const DeviceModel& model) {
  return {{model.max_blocks_per_sm, model.max_warps_per_sm(), model.registers_per_sm, model.shared_bytes_per_sm},
          model.warp_size,
          model.shared_bytes_reserved_per_block};
}

SmShare share_of(const BlockNeed& need, const SmModel& sm) {
  const uint32_t warps = narrow(need.threads / sm.warp_size + (need.threads % sm.warp_size != 0));
  const uint64_t shared = std::min<uint64_t>(need.shared_bytes, kMost) + sm.reserved_shared_bytes;
  return {1, warps, narrow(warps * registers_of_warp(need.registers_per_thread, sm)),
          narrow(round_up(shared, kSharedStep))};
}

uint32_t fitting(const SmShare& room, const SmShare& block) {
  const auto times = [](uint32_t have, uint32_t each) { return each ? have / each : kMost; };
  return std::min({times(room.blocks, block.blocks), times(room.warps, block.warps),
                   times(room.registers, block.registers), times(room.shared, block.shared)});
}

uint32_t blocks_per_sm(const BlockNeed& need, const DeviceModel& model) {
  if (need.threads == 0 || need.threads > model.max_threads_per_block) return 0;
  const SmModel sm = sm_of(model);
  return fitting(sm.whole, share_of(need, sm));
}

uint32_t most_registers(uint64_t threads, const DeviceModel& model) {
  const uint64_t counted = round_up(std::max<uint64_t>(threads, 1), uint64_t{kRegisterFiles} * model.warp_size);
  return static_cast<uint32_t>(model.registers_per_block / counted / kThreadRegisterStep * kThreadRegisterStep);
}

uint32_t most_threads(uint32_t registers_per_thread, const DeviceModel& model) {
  if (registers_per_thread == 0) return model.max_threads_per_block;
  const uint64_t step = uint64_t{kRegisterFiles} * model.warp_size;
  const uint64_t threads =
      model.registers_per_block / round_up(registers_per_thread, kThreadRegisterStep) / step * step;
  return static_cast<uint32_t>(std::min<uint64_t>(threads, model.max_threads_per_block));
}

SmShare without(const SmShare& room, const SmShare& block) {
  return {less(room.blocks, block.blocks), less(room.warps, block.warps), less(room.registers, block.registers),
          less(room.shared, block.shared)};
}

SmShare together(const SmShare& a, const SmShare& b) {
  return {narrow(uint64_t{a.blocks} + b.blocks), narrow(uint64_t{a.warps} + b.warps),
          narrow(uint64_t{a.registers} + b.registers), narrow(uint64_t{a.shared} + b.shared)};
}

uint64_t shared_bytes_left(const BlockNeed& need, uint32_t blocks, const DeviceModel& model) {
  if (blocks == 0) return 0;
  const uint64_t each = model.shared_bytes_per_sm / blocks / kSharedStep * kSharedStep;
  const uint64_t own = each > model.shared_bytes_reserved_per_block ? each - model.shared_bytes_reserved_per_block : 0;
  const uint64_t most =
      std::min<uint64_t>(own, std::max(model.shared_bytes_per_block_optin, model.shared_bytes_per_block));
  return most > need.shared_bytes ? most - need.shared_bytes : 0;
}

}  // namespace heddle
