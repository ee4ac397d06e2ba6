#pragma once

#include <cstddef>
#include <cstdint>

#include "device/software/simt/op.h"

// The state of a warp and the moves on it. A warp's lanes may be at different places: each place with its set of lanes
// is a path. One path runs (the hot fields of Warp), the others are parked. The path with the deepest call, then with
// the lowest pc, runs first: lanes that went different ways meet again where their ways join (reconvergence by least
// program counter). A path that comes to where another stands is merged with it.
namespace heddle::software {

struct BlockState;
struct CompiledFunction;

// One activation of a function by some lanes of a warp.
struct Frame {
  const CompiledFunction* function = nullptr;
  std::byte* registers = nullptr;  // 64-byte aligned
  uint32_t local_base = 0;         // of this activation, in each thread's local memory
  uint32_t depth = 0;
  uint32_t lanes = 0;  // here or in deeper calls
  uint32_t return_pc = 0;
  Frame* caller = nullptr;
};

enum class Wait : uint8_t {
  kNone,         // ready to run
  kSync,         // at a .sync instruction, for the other lanes of its mask to come to the same one
  kWarpBarrier,  // at a bar.warp.sync; detail: its mask
  kBarrier,      // at a block-wide barrier; detail: its index
};

struct Path {
  Frame* frame = nullptr;
  uint32_t pc = 0;
  uint32_t lanes = 0;
  Wait wait = Wait::kNone;
  uint32_t detail = 0;
  uint64_t last_run = 0;  // Warp::turn when it was parked
};

inline constexpr uint32_t kBarriers = 16;

struct Warp {
  // The running path; active == 0: none.
  std::byte* registers = nullptr;
  uint32_t active = 0;
  uint32_t pc = 0;     // of the next Op, while an Op runs
  uint32_t limit = 0;  // reaching this pc calls for reschedule(): another path stands there, or the path stopped
  uint32_t polls = 0;  // kPolling accesses since the last turn
  const Op* code = nullptr;
  Frame* frame = nullptr;
  Frame* root = nullptr;  // the kernel's own
  BlockState* block = nullptr;
  std::byte* local = nullptr;  // of lane 0; lane l's is at local + l * BlockState::local_stride
  uint64_t global_bytes = 0;
  uint64_t host_bytes = 0;  // of these, in memory that lies on the host
  uint64_t refunded = 0;    // of the turn: instructions that had to wait and will run again, or were none

  uint32_t index = 0;  // in the block
  uint32_t live = 0;   // lanes that have not exited
  uint32_t tid[3][kLanes] = {};

  Path parked[kLanes];
  uint32_t parked_count = 0;
  uint64_t turn = 0;
  uint32_t patience = 0;
  uint32_t arrived[kBarriers] = {};  // lanes that stand at, or passed on with bar.arrive, a barrier not yet complete

  static constexpr uint32_t kNoLimit = ~0u;
};

// Sends `lanes`, a proper part of the active ones, to `target`; the rest goes on at warp.pc.
void diverge(Warp& warp, uint32_t target, uint32_t lanes);

// Chooses the path to run, merging those that have met. False if none is ready.
bool reschedule(Warp& warp);

// Parks the running path at the Op that is running, which will not count; it runs again once the path is woken.
void park_waiting(Warp& warp, const Op& op, uint32_t lanes, Wait wait, uint32_t detail);

// Makes paths ready that wait in this way; they run their Op again, or the next one.
void wake(Warp& warp, Wait wait, bool behind_op);

// Ends `lanes` of the running path.
void retire(Warp& warp, uint32_t lanes);

// To be called between turns of the interpreter: if the running path seems to wait for what a parked one must do (it
// polls memory, and has for long), lets the parked one run. Lanes that spin for a lock held by a lane at a later pc
// would otherwise spin for ever.
void yield_if_polling(Warp& warp);

// The lanes for which a guard holds.
[[gnu::always_inline]] inline uint32_t guarded_lanes(const Warp& warp, const Op& op) {
  if (op.guard == Op::kNone) return warp.active;
  uint32_t mask;
  __builtin_memcpy(&mask, warp.registers + op.guard, sizeof mask);
  return warp.active & (op.guard_negated ? ~mask : mask);
}

// Stops the running path until reschedule(), which the interpreter calls before the next Op.
[[gnu::always_inline]] inline void stop_path(Warp& warp) {
  warp.limit = 0;
}

}  // namespace heddle::software
