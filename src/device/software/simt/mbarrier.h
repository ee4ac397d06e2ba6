#pragma once

#include "device/software/simt/op.h"

// Barriers in memory (mbarrier): 64 bits of which a program knows only that they are opaque. Address: a and imm, in the
// space that count says (At).
namespace heddle::software {

void mbarrier_init(Warp& warp, const Op& op);           // b: how many arrivals complete a phase
void mbarrier_invalidate(Warp& warp, const Op& op);     //
void mbarrier_arrive(Warp& warp, const Op& op);         // d: the state before, or none; b: how many arrive, or none: 1
void mbarrier_arrive_drop(Warp& warp, const Op& op);    // the same, and they will not be expected again
void mbarrier_test_state(Warp& warp, const Op& op);     // d: whether the phase of state b is over
void mbarrier_test_parity(Warp& warp, const Op& op);    // d: whether the phase of parity b is over
void mbarrier_pending_count(Warp& warp, const Op& op);  // d: arrivals that state a still waits for

}  // namespace heddle::software
