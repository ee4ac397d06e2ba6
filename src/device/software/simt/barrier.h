#pragma once

#include <cstdint>

#include "device/software/simt/warp.h"

// Rendezvous: the instructions at which threads wait for each other. Within a warp (.sync and bar.warp.sync) and within
// a block (bar.sync, bar.arrive, bar.red).
namespace heddle::software {

// One of a block's 16 barriers, between completions. A warp that comes with all its live lanes to a plain bar.sync is
// held (BlockState::held): it keeps its running path, and does not run. Other lanes are parked.
struct Barrier {
  uint32_t expected = 0;    // threads, as the instruction states; 0: all live threads of the block
  uint32_t arrivals = 0;    // of threads not held; a thread that passes with bar.arrive may come again
  uint32_t true_votes = 0;  // of bar.red
  uint32_t votes = 0;
};

// What a block-wide barrier instruction does, in Op::count.
enum class BarrierKind : uint8_t { kSync, kArrive, kReducePopc, kReduceAnd, kReduceOr };

// Of the active lanes, those whose .sync instruction can run now: all live lanes of their mask are here. The others are
// parked. `masks` has the member mask of each lane.
uint32_t gather_lanes(Warp& warp, const Op& op, const uint32_t* masks);

void warp_barrier(Warp& warp, const Op& op);
void block_barrier(Warp& warp, const Op& op);
void block_sync(Warp& warp, const Op& op);  // bar.sync of the whole block, its index in the instruction

// Completes barriers that were waiting for lanes that have exited since.
void lanes_exited(Warp& warp);

}  // namespace heddle::software
