// The inner loop.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {

// Runs the Op for the lanes whose predicate holds.
void run_guarded(Warp& warp, const Op& op) {
  u32 before = warp.active;
  warp.active = guarded_lanes(warp, op);
  if (warp.active) op.inner(warp, op);
  warp.active = before;
}

uint64_t run_warp(Warp& warp, uint64_t budget) {
  uint64_t done = 0;
  while (done < budget) {
    if (__builtin_expect(warp.pc >= warp.limit, 0) && (is_held(warp) || !reschedule(warp))) break;
    const Op& op = warp.code[warp.pc++];
    op.run(warp, op);
    done += op.weight;
  }
  return done;
}

}  // namespace heddle::software::HEDDLE_LANES
