#pragma once

#include "device/software/simt/warp.h"

// Instructions that change where lanes go on.
namespace heddle::software {

void branch(Warp& warp, const Op& op);  // to op.target, for the lanes whose guard holds
// The branch behind a comparison, as part of it.
[[gnu::always_inline]] inline void branch_behind(Warp& warp, const Op& comparison) {
  ++warp.pc;
  branch(warp, *(&comparison + 1));
}
void branch_by_index(Warp& warp, const Op& op);  // to entry a of table op.target
void exit_lanes(Warp& warp, const Op& op);
void trap(Warp& warp, const Op& op);
void call(Warp& warp, const Op& op);           // call site op.target
void call_indirect(Warp& warp, const Op& op);  // the function whose address is in a
void return_from_call(Warp& warp, const Op& op);
void fence(Warp& warp, const Op& op);
void nanosleep(Warp& warp, const Op& op);
void no_operation(Warp& warp, const Op& op);
void end_turn(Warp& warp, const Op& op);  // the other warps of the block go on first

}  // namespace heddle::software
