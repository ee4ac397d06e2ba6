#include "device/software/simt/barrier.h"

#include <bit>
#include <cstring>

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

uint32_t read_lane(const Warp& warp, uint32_t offset, uint32_t lane) {
  uint32_t value;
  std::memcpy(&value, warp.registers + offset + lane * 4, sizeof value);
  return value;
}

// The lanes of `lanes` that have the same value as the first of them.
template <class Value>
uint32_t same_as_first(uint32_t lanes, Value value) {
  uint32_t first = value(static_cast<uint32_t>(std::countr_zero(lanes)));
  uint32_t same = 0;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (value(lane) == first) same |= 1u << lane;
  }
  return same;
}

bool holds(uint32_t index, const Warp& warp) {
  return warp.block->held[index] >> warp.index & 1;
}

bool is_complete(const BlockState& block, uint32_t index) {
  const Barrier& barrier = block.barriers[index];
  const uint32_t held = block.held[index];
  if (barrier.expected == 0 && (block.alive & ~held) == 0) return true;
  if (barrier.expected == 0 && held == 0 && barrier.arrivals < block.live) return false;
  uint32_t arrived = 0;
  for (const Warp& warp : block.warps) {
    uint32_t here = holds(index, warp) ? warp.live : warp.arrived[index];
    bool whole = (warp.live & ~here) == 0;
    if (barrier.expected == 0 && !whole) return false;
    // Counts are in whole warps: the last warp of a block counts as 32 threads even if it has fewer.
    if (here) arrived += whole ? kLanes : static_cast<uint32_t>(std::popcount(here));
  }
  return arrived >= barrier.expected;
}

// Gives the lanes of a path that waits at a bar.red its result.
void write_reduction(const Path& path, const Op& op, const Barrier& barrier) {
  auto kind = static_cast<BarrierKind>(op.count);
  std::byte* destination = path.frame->registers + op.d;
  if (kind == BarrierKind::kReducePopc) {
    for (uint32_t rest = path.lanes; rest; rest &= rest - 1)
      std::memcpy(destination + std::countr_zero(rest) * 4, &barrier.true_votes, 4);
  } else if (kind == BarrierKind::kReduceAnd || kind == BarrierKind::kReduceOr) {
    bool holds = kind == BarrierKind::kReduceAnd ? barrier.true_votes == barrier.votes : barrier.true_votes > 0;
    uint32_t mask;
    std::memcpy(&mask, destination, 4);
    mask = holds ? mask | path.lanes : mask & ~path.lanes;
    std::memcpy(destination, &mask, 4);
  }
}

void complete_parked(BlockState& block, uint32_t index) {
  for (Warp& warp : block.warps) {
    warp.arrived[index] = 0;
    for (uint32_t i = 0; i < warp.parked_count; ++i) {
      Path& path = warp.parked[i];
      if (path.wait != Wait::kBarrier || path.detail != index) continue;
      write_reduction(path, warp.code[path.pc], block.barriers[index]);
      path.wait = Wait::kNone;
      ++path.pc;
    }
  }
}

void complete(BlockState& block, uint32_t index) {
  Barrier& barrier = block.barriers[index];
  if (barrier.arrivals) complete_parked(block, index);
  block.running |= block.held[index];
  for (uint32_t rest = block.held[index]; rest; rest &= rest - 1) {
    Warp& warp = block.warps[static_cast<size_t>(std::countr_zero(rest))];
    warp.limit = Warp::kNoLimit;  // it has no other path
  }
  block.held[index] = 0;
  barrier = {};
  block.barriers_in_use &= ~(1u << index);
}

void arrive(Warp& warp, const Op& op, uint32_t lanes, uint32_t index) {
  Barrier& barrier = warp.block->barriers[index];
  warp.block->barriers_in_use |= 1u << index;
  barrier.arrivals += static_cast<uint32_t>(std::popcount(lanes));
  if (op.b != Op::kNone) barrier.expected = read_lane(warp, op.b, static_cast<uint32_t>(std::countr_zero(lanes)));
  if (op.c != Op::kNone) {
    uint32_t holds;
    std::memcpy(&holds, warp.registers + op.c, 4);
    barrier.true_votes += static_cast<uint32_t>(std::popcount(holds & lanes));
    barrier.votes += static_cast<uint32_t>(std::popcount(lanes));
  }
  warp.arrived[index] |= lanes;
  if (static_cast<BarrierKind>(op.count) != BarrierKind::kArrive) park_waiting(warp, op, lanes, Wait::kBarrier, index);
  if (is_complete(*warp.block, index)) complete(*warp.block, index);
}

// All lanes that stand at a bar.warp.sync of this mask, the active ones among `lanes` included.
uint32_t lanes_at_warp_barrier(const Warp& warp, uint32_t lanes, uint32_t mask) {
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    const Path& path = warp.parked[i];
    if (path.wait == Wait::kWarpBarrier && path.detail == mask) lanes |= path.lanes;
  }
  return lanes;
}

void release_warp_barrier(Warp& warp, uint32_t mask) {
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    Path& path = warp.parked[i];
    if (path.wait != Wait::kWarpBarrier || path.detail != mask) continue;
    path.wait = Wait::kNone;
    ++path.pc;
  }
  stop_path(warp);  // the paths let go may run before this one
}

}  // namespace

uint32_t gather_lanes(Warp& warp, const Op& op, const uint32_t* masks) {
  if (warp.active == warp.live) return warp.active;
  uint32_t ready = 0;
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    bool all_here = (masks[lane] & warp.live & ~warp.active) == 0;
    if (all_here) ready |= 1u << lane;
  }
  if (ready == warp.active) return ready;
  park_waiting(warp, op, warp.active & ~ready, Wait::kSync, 0);
  if (!ready) warp.refunded += op.weight;
  return ready;
}

void warp_barrier(Warp& warp, const Op& op) {
  for (uint32_t rest = warp.active; rest;) {
    auto mask_of = [&](uint32_t lane) { return read_lane(warp, op.a, lane); };
    uint32_t lanes = same_as_first(rest, mask_of);
    uint32_t mask = mask_of(static_cast<uint32_t>(std::countr_zero(lanes)));
    rest &= ~lanes;
    if ((mask & warp.live & ~lanes) == 0) continue;
    if ((mask & warp.live & ~lanes_at_warp_barrier(warp, lanes, mask)) == 0) {
      release_warp_barrier(warp, mask);
    } else {
      park_waiting(warp, op, lanes, Wait::kWarpBarrier, mask);
    }
  }
}

void block_barrier(Warp& warp, const Op& op) {
  if (op.flags & kIndexGiven) return arrive(warp, op, warp.active, static_cast<uint32_t>(op.imm));
  for (uint32_t rest = warp.active; rest;) {
    auto index_of = [&](uint32_t lane) { return read_lane(warp, op.a, lane); };
    uint32_t lanes = same_as_first(rest, index_of);
    auto first = static_cast<uint32_t>(std::countr_zero(lanes));
    uint32_t index = index_of(first);
    if (index >= kBarriers) return raise(warp, op, first, kCudaLaunchFailure, "barrier index above 15");
    arrive(warp, op, lanes, index);
    rest &= ~lanes;
  }
}

// The warp stops, its path as it is: reschedule() says no until the barrier is complete.
void block_sync(Warp& warp, const Op& op) {
  if (warp.active != warp.live) return block_barrier(warp, op);
  BlockState& block = *warp.block;
  const auto index = static_cast<uint32_t>(op.imm);
  const uint32_t me = 1u << warp.index;
  block.barriers_in_use |= 1u << index;
  block.held[index] |= me;
  block.running &= ~me;
  stop_path(warp);
  // While other warps run that have not come, only a count of threads can be complete.
  if (block.running && !block.barriers[index].arrivals) return;
  if (is_complete(block, index)) complete(block, index);
}

void lanes_exited(Warp& warp) {
  BlockState& block = *warp.block;
  for (uint32_t rest = block.barriers_in_use; rest; rest &= rest - 1) {
    auto index = static_cast<uint32_t>(std::countr_zero(rest));
    if (is_complete(block, index)) complete(block, index);
  }
}

}  // namespace heddle::software
