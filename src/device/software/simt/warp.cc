#include "device/software/simt/warp.h"

#include <algorithm>
#include <bit>

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

// Turns with polling before a parked path gets one: far more than a loop that merely has an atomic in it needs to
// reconverge, few enough that a lock changes hands in well under a millisecond.
constexpr uint32_t kPatience = 10;

bool may_merge(const Path& a, const Path& b) {
  auto meets = [](const Path& p) { return p.wait == Wait::kNone || p.wait == Wait::kSync; };
  return a.frame == b.frame && a.pc == b.pc && meets(a) && meets(b);
}

void park(Warp& warp, uint32_t pc, uint32_t lanes) {
  warp.parked[warp.parked_count++] = {warp.frame, pc, lanes, Wait::kNone, 0, warp.turn};
}

void merge_paths(Warp& warp) {
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    for (uint32_t j = i + 1; j < warp.parked_count;) {
      if (!may_merge(warp.parked[i], warp.parked[j])) {
        ++j;
        continue;
      }
      warp.parked[i].lanes |= warp.parked[j].lanes;
      warp.parked[i].wait = Wait::kNone;
      warp.parked[j] = warp.parked[--warp.parked_count];
    }
  }
}

bool runs_before(const Path& a, const Path& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

void update_limit(Warp& warp) {
  warp.limit = Warp::kNoLimit;
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    const Path& path = warp.parked[i];
    bool may_meet = path.frame == warp.frame && path.pc > warp.pc && path.wait <= Wait::kSync;
    if (may_meet) warp.limit = std::min(warp.limit, path.pc);
  }
}

void run_path(Warp& warp, uint32_t i) {
  Path path = warp.parked[i];
  if (i != --warp.parked_count) warp.parked[i] = warp.parked[warp.parked_count];
  warp.frame = path.frame;
  warp.registers = path.frame->registers;
  warp.pc = path.pc;
  warp.active = path.lanes;
  update_limit(warp);
}

bool run_only_path(Warp& warp) {
  const Path& path = warp.parked[0];
  if (path.wait != Wait::kNone) {
    stop_path(warp);
    return false;
  }
  run_path(warp, 0);
  return true;
}

}  // namespace

void diverge(Warp& warp, uint32_t target, uint32_t lanes) {
  uint32_t rest = warp.active & ~lanes;
  if (target > warp.pc) {
    park(warp, target, lanes);
    warp.active = rest;
  } else {
    park(warp, warp.pc, rest);
    warp.active = lanes;
    std::swap(warp.pc, target);
  }
  warp.limit = std::min(warp.limit, target);
}

bool reschedule(Warp& warp) {
  if (warp.block->fault.cuda_error || is_held(warp) || !warp.live) return false;
  if (warp.active && warp.parked_count == 0) {
    warp.limit = Warp::kNoLimit;
    return true;
  }
  if (!warp.active && warp.parked_count == 1) return run_only_path(warp);
  if (warp.active) park(warp, warp.pc, warp.active);
  warp.active = 0;
  merge_paths(warp);
  uint32_t best = warp.parked_count;
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    if (warp.parked[i].wait != Wait::kNone) continue;
    if (best == warp.parked_count || runs_before(warp.parked[i], warp.parked[best])) best = i;
  }
  if (best == warp.parked_count) {
    stop_path(warp);
    return false;
  }
  run_path(warp, best);
  return true;
}

void park_waiting(Warp& warp, const Op& op, uint32_t lanes, Wait wait, uint32_t detail) {
  auto pc = static_cast<uint32_t>(&op - warp.code);
  warp.parked[warp.parked_count++] = {warp.frame, pc, lanes, wait, detail, warp.turn};
  warp.active &= ~lanes;
  stop_path(warp);
}

void wake(Warp& warp, Wait wait, bool behind_op) {
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    Path& path = warp.parked[i];
    if (path.wait != wait) continue;
    path.wait = Wait::kNone;
    path.pc += behind_op;
  }
}

void retire(Warp& warp, uint32_t lanes) {
  warp.active &= ~lanes;
  warp.live &= ~lanes;
  warp.block->live -= lanes == kAllLanes ? kLanes : static_cast<uint32_t>(std::popcount(lanes));
  if (!warp.live) {
    warp.block->alive &= ~(1u << warp.index);
    warp.block->running &= ~(1u << warp.index);
  }
  stop_path(warp);
  for (Frame* frame = warp.frame; frame->caller;) {
    Frame* caller = frame->caller;
    frame->lanes &= ~lanes;
    if (!frame->lanes) warp.block->frames.release(frame);
    frame = caller;
  }
  // Those that wait for all live lanes of a mask may have waited for these only.
  wake(warp, Wait::kSync, false);
  wake(warp, Wait::kWarpBarrier, false);
  lanes_exited(warp);
}

void yield_if_polling(Warp& warp) {
  ++warp.turn;
  if (warp.polls == 0) {
    warp.patience = 0;
    return;
  }
  warp.polls = 0;
  uint32_t oldest = warp.parked_count;
  for (uint32_t i = 0; i < warp.parked_count; ++i) {
    if (warp.parked[i].wait != Wait::kNone) continue;
    if (oldest == warp.parked_count || warp.parked[i].last_run < warp.parked[oldest].last_run) oldest = i;
  }
  if (oldest == warp.parked_count || warp.active == 0) {
    warp.patience = 0;
    return;
  }
  if (++warp.patience < kPatience) return;
  warp.patience = 0;
  uint32_t current = warp.parked_count;
  park(warp, warp.pc, warp.active);
  std::swap(warp.parked[oldest], warp.parked[current]);
  run_path(warp, current);
}

}  // namespace heddle::software
