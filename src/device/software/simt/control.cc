#include "device/software/simt/control.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "device/software/simt/block_state.h"

namespace heddle::software {
namespace {

uint32_t first_lane(uint32_t lanes) {
  return static_cast<uint32_t>(std::countr_zero(lanes));
}

void copy_locals(Warp& warp, const std::vector<LocalPlace>& from, uint32_t from_base, const std::vector<LocalPlace>& to,
                 uint32_t to_base) {
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    std::byte* local = warp.local + size_t{first_lane(rest)} * warp.block->local_stride;
    for (size_t i = 0; i < from.size(); ++i)
      std::memcpy(local + to_base + to[i].offset, local + from_base + from[i].offset, from[i].bytes);
  }
}

bool same_sizes(const std::vector<LocalPlace>& a, const std::vector<LocalPlace>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const LocalPlace& x, const LocalPlace& y) { return x.bytes == y.bytes; });
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
    if (index[first] >= table.size()) return raise(warp, op, first, kCudaLaunchFailure, "brx.idx beyond its table");
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
  raise(warp, op, first_lane(warp.active), kCudaLaunchFailure, "trap");
}

namespace {

void call_function(Warp& warp, const Op& op, const CallSite& site, const CompiledFunction& function) {
  BlockState& block = *warp.block;
  Frame* caller = warp.frame;
  uint32_t local_base = caller->local_base + caller->function->local_bytes;
  if (local_base + uint64_t{function.local_bytes} > block.local_bytes)
    return raise(warp, op, first_lane(warp.active), kCudaHardwareStackError,
                 stringf("stack overflow: %u bytes of local memory a thread, cudaLimitStackSize raises the limit of "
                         "recursion",
                         block.local_bytes));
  Frame* frame = block.frames.acquire(function);
  frame->local_base = local_base;
  frame->depth = caller->depth + 1;
  frame->lanes = warp.active;
  frame->return_pc = warp.pc;
  frame->caller = caller;
  copy_locals(warp, site.arguments, caller->local_base, function.parameters, local_base);
  enter(warp, frame, function.entry);
}

// The function at an address; null if there is none that the kernel reaches.
const CompiledFunction* function_at_address(const CompiledKernel& kernel, uint64_t address) {
  uint64_t number = (address - kFunctionWindow) / kFunctionStep;
  if (address % kFunctionStep || number >= kernel.functions_by_number.size()) return nullptr;
  uint32_t index = kernel.functions_by_number[number];
  return index == Op::kNone || index == 0 ? nullptr : &kernel.functions[index];
}

}  // namespace

void call(Warp& warp, const Op& op) {
  const CallSite& site = warp.block->kernel->calls[op.target];
  call_function(warp, op, site, warp.block->kernel->functions[site.function]);
}

// Lanes that call the same function as the first one go now; the others stay here and come again.
void call_indirect(Warp& warp, const Op& op) {
  uint64_t address[kLanes];
  std::memcpy(address, warp.registers + op.a, sizeof address);
  uint32_t first = first_lane(warp.active), lanes = 0;
  for (uint32_t rest = warp.active; rest; rest &= rest - 1)
    if (address[first_lane(rest)] == address[first]) lanes |= 1u << first_lane(rest);
  const CompiledFunction* function = function_at_address(*warp.block->kernel, address[first]);
  if (!function)
    return raise(
        warp, op, first, kCudaIllegalAddress,
        stringf("call of 0x%llx, where there is no function", static_cast<unsigned long long>(address[first])));
  const CallSite& site = warp.block->kernel->calls[op.target];
  if (!same_sizes(site.arguments, function->parameters) || !same_sizes(site.results, function->results))
    return raise(warp, op, first, kCudaLaunchFailure,
                 "call of " + function->name + " with other parameters than it has");
  if (uint32_t others = warp.active & ~lanes) {
    warp.parked[warp.parked_count++] = {warp.frame, warp.pc - 1, others, Wait::kNone, 0, warp.turn};
    warp.active = lanes;
  }
  call_function(warp, op, site, *function);
}

void return_from_call(Warp& warp, const Op&) {
  Frame* frame = warp.frame;
  Frame* caller = frame->caller;
  if (!caller) return retire(warp, warp.active);
  const CallSite& site = warp.block->kernel->calls[warp.code[frame->return_pc - 1].target];
  copy_locals(warp, frame->function->results, frame->local_base, site.results, caller->local_base);
  frame->lanes &= ~warp.active;
  enter(warp, caller, frame->return_pc);
  if (!frame->lanes) warp.block->frames.release(frame);
}

void end_turn(Warp& warp, const Op& op) {
  warp.refunded += op.weight;
}

void fence(Warp&, const Op&) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void nanosleep(Warp& warp, const Op&) {
  ++warp.polls;
}

void no_operation(Warp&, const Op&) {}

}  // namespace heddle::software
