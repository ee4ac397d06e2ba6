#include "device/software/simt/control.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

uint32_t first_lane(uint32_t lanes) {
  return static_cast<uint32_t>(std::countr_zero(lanes));
}

void copy_locals(Warp& warp, const std::vector<LocalCopy>& copies, const Frame& caller, const Frame& callee,
                 uint32_t lanes, bool to_callee) {
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    std::byte* local = warp.local + size_t{first_lane(rest)} * warp.block->local_stride;
    for (const LocalCopy& copy : copies) {
      std::byte* outer = local + caller.local_base + copy.caller_offset;
      std::byte* inner = local + callee.local_base + copy.callee_offset;
      std::memcpy(to_callee ? inner : outer, to_callee ? outer : inner, copy.bytes);
    }
  }
}

void enter(Warp& warp, Frame* frame, uint32_t pc) {
  warp.frame = frame;
  warp.registers = frame->registers;
  warp.pc = pc;
  stop_path(warp);  // to compare with the paths of this frame, not those of the one left
}

}  // namespace

void branch(Warp& warp, const Op& op) {
  uint32_t taken = guarded_lanes(warp, op);
  if (taken == warp.active) {
    warp.pc = op.target;
  } else if (taken) {
    diverge(warp, op.target, taken);
  }
}

void branch_by_index(Warp& warp, const Op& op) {
  const std::vector<uint32_t>& table = warp.block->kernel->tables[op.target];
  uint32_t index[kLanes];
  std::memcpy(index, warp.registers + op.a, sizeof index);
  uint32_t pc = 0;
  for (uint32_t rest = warp.active; rest;) {
    uint32_t first = first_lane(rest), lanes = 0;
    if (index[first] >= table.size()) return raise(warp, op, first, kLaunchFailure, "brx.idx beyond its table");
    for (uint32_t others = rest; others; others &= others - 1)
      if (index[first_lane(others)] == index[first]) lanes |= 1u << first_lane(others);
    rest &= ~lanes;
    pc = table[index[first]];
    // Lanes of one entry after the other leave; the last ones are simply moved there.
    if (rest) warp.parked[warp.parked_count++] = {warp.frame, pc, lanes, Wait::kNone, 0, warp.turn};
    if (rest) warp.active &= ~lanes;
  }
  warp.pc = pc;
  stop_path(warp);
}

void exit_lanes(Warp& warp, const Op&) {
  retire(warp, warp.active);
}

void trap(Warp& warp, const Op& op) {
  raise(warp, op, first_lane(warp.active), kLaunchFailure, "trap");
}

void call(Warp& warp, const Op& op) {
  BlockState& block = *warp.block;
  const CallSite& site = block.kernel->calls[op.target];
  const CompiledFunction& function = block.kernel->functions[site.function];
  Frame* caller = warp.frame;
  uint32_t local_base = caller->local_base + caller->function->local_bytes;
  if (local_base + uint64_t{function.local_bytes} > block.local_bytes)
    return raise(warp, op, first_lane(warp.active), kLaunchFailure,
                 stringf("stack overflow: %u bytes of local memory a thread, cudaLimitStackSize raises the limit of "
                         "recursion",
                         block.local_bytes));
  Frame* frame = block.frames.acquire(function);
  frame->local_base = local_base;
  frame->depth = caller->depth + 1;
  frame->lanes = warp.active;
  frame->return_pc = warp.pc;
  frame->caller = caller;
  copy_locals(warp, site.arguments, *caller, *frame, warp.active, true);
  enter(warp, frame, function.entry);
}

void return_from_call(Warp& warp, const Op&) {
  Frame* frame = warp.frame;
  Frame* caller = frame->caller;
  if (!caller) return retire(warp, warp.active);
  const Op& call_op = warp.code[frame->return_pc - 1];
  copy_locals(warp, warp.block->kernel->calls[call_op.target].results, *caller, *frame, warp.active, false);
  frame->lanes &= ~warp.active;
  enter(warp, caller, frame->return_pc);
  if (!frame->lanes) warp.block->frames.release(frame);
}

void fence(Warp&, const Op&) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void nanosleep(Warp& warp, const Op&) {
  ++warp.polls;
}

void no_operation(Warp&, const Op&) {}

}  // namespace heddle::software
