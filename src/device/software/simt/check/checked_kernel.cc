#include "device/software/simt/check/checked_kernel.h"

#define HEDDLE_LANES common
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "device/software/simt/check/access_check.h"
#include "device/software/simt/check/checked_code.h"
#include "device/software/simt/check/each_lane.h"
#include "device/software/simt/control.h"
#include "device/software/simt/lanes/access.h"
#include "device/software/simt/matrix.h"
#include "device/software/simt/mbarrier.h"
#include "device/software/simt/native.h"

namespace heddle::software {
namespace {

using common::u32;
using common::u64;
using Kind = CheckedStep::Kind;

const CheckedStep& step_at(const Warp& warp, const Op& op) {
  return warp.block->kernel->checked->steps[static_cast<size_t>(&op - warp.code)];
}

// Where each active lane's access goes on the host; 0 where it will fault.
using Hosts = std::array<u64, kLanes>;
template <At kSpace>
Hosts hosts_in(const Warp& warp, const Op& op, u64 bytes, bool write) {
  alignas(64) u64 address[kLanes];
  common::form_addresses<kSpace>(warp, op, address);
  Hosts host{};
  for_each_lane(warp.active, [&](u32 lane) {
    host[lane] = common::resolve_inside<kSpace>(warp, lane, address[lane], bytes, write);
  });
  return host;
}

Hosts hosts_in(At space, const Warp& warp, const Op& op, u64 bytes, bool write) {
  switch (space) {
    case At::kGlobal:
      return hosts_in<At::kGlobal>(warp, op, bytes, write);
    case At::kShared:
      return hosts_in<At::kShared>(warp, op, bytes, write);
    case At::kLocal:
      return hosts_in<At::kLocal>(warp, op, bytes, write);
    default:
      return hosts_in<At::kGeneric>(warp, op, bytes, write);
  }
}

// What a store writes for this element of this lane.
const uint8_t* stored_value(const Warp& warp, const Op& op, const CheckedStep& step, u32 lane, u32 element) {
  const u32 at = op.count == 1 ? op.d : warp.block->operands[op.extra + element];
  return reinterpret_cast<const uint8_t*>(warp.registers + at + size_t{lane} * step.slot_bytes);
}

// ld and st.
void check_elements(Warp& warp, const Op& op) {
  const CheckedStep& step = step_at(warp, op);
  AccessCheck& check = *warp.block->check;
  const bool store = step.kind == Kind::kStore;
  const Hosts host = hosts_in(step.space, warp, op, u64{step.element_bytes} * op.count, store);
  check.pass(warp, warp.active);
  for_each_lane(warp.active, [&](u32 lane) {
    if (host[lane] == 0) return;
    for (u32 i = 0; i < op.count; ++i) {
      const uint8_t* value = store ? stored_value(warp, op, step, lane, i) : nullptr;
      const u64 at = host[lane] + u64{i} * step.element_bytes;
      check.access({warp, op, lane, !store, store, (op.flags & kPolling) != 0, at, step.element_bytes, value});
    }
  });
  step.run(warp, op);
}

// atom, red and mbarrier.
void check_atomic(Warp& warp, const Op& op) {
  const CheckedStep& step = step_at(warp, op);
  AccessCheck& check = *warp.block->check;
  const bool reads = step.kind != Kind::kBarrierObject;
  const Hosts host = hosts_in(static_cast<At>(op.count), warp, op, step.element_bytes, true);
  check.pass(warp, warp.active);
  for_each_lane(warp.active, [&](u32 lane) {
    if (host[lane]) check.access({warp, op, lane, reads, true, true, host[lane], step.element_bytes});
  });
  step.run(warp, op);
}

// Instructions of several lanes together: which of them take part shows only when they have run.
void check_sync(Warp& warp, const Op& op) {
  const u32 before = warp.active;
  warp.block->check->pass(warp, before);
  step_at(warp, op).run(warp, op);
  warp.block->check->meet(warp, before & warp.active);
}

void check_matrix(Warp& warp, const Op& op) {
  const CheckedStep& step = step_at(warp, op);
  AccessCheck& check = *warp.block->check;
  const u32 before = warp.active;
  const bool write = step.run == store_matrix;
  check.pass(warp, before);
  // Before it runs: it may write the registers that its addresses come from.
  const auto accesses =
      step.run == load_small_matrices ? small_matrix_accesses(warp, op) : matrix_accesses(warp, op, write);
  step.run(warp, op);
  const u32 ran = before & warp.active;
  if (ran != warp.live) return;  // some wait; they come again
  check.meet(warp, ran);
  for (const MatrixAccess& at : accesses) {
    const auto* value = write ? reinterpret_cast<const uint8_t*>(at.host) : nullptr;
    check.access({warp, op, at.lane, !write, write, false, at.host, at.bytes, value});
  }
}

u32 read_lane(const Warp& warp, u32 offset, u32 lane) {
  u32 value;
  std::memcpy(&value, warp.registers + offset + size_t{lane} * 4, sizeof value);
  return value;
}

// Calls visit(value, lanes) for each value of the register among the active lanes.
template <class Visit>
void for_each_value(const Warp& warp, u32 offset, Visit visit) {
  for (u32 rest = warp.active; rest;) {
    const u32 value = read_lane(warp, offset, static_cast<u32>(std::countr_zero(rest)));
    u32 lanes = 0;
    for_each_lane(rest, [&](u32 lane) { lanes |= u32{read_lane(warp, offset, lane) == value} << lane; });
    rest &= ~lanes;
    visit(value, lanes);
  }
}

void check_block_barrier(Warp& warp, const Op& op) {
  AccessCheck& check = *warp.block->check;
  const bool waits = static_cast<BarrierKind>(op.count) != BarrierKind::kArrive;
  check.pass(warp, warp.active);
  u32 arrived = 0;  // bit by bit: at these
  const auto arrive = [&](u32 index, u32 lanes) {
    check.arrive_at_block(warp, lanes, index, waits);
    if (index < kBarriers) arrived |= 1u << index;
  };
  if (op.flags & kIndexGiven) {
    arrive(static_cast<u32>(op.imm), warp.active);
  } else {
    for_each_value(warp, op.a, arrive);
  }
  step_at(warp, op).run(warp, op);
  for_each_lane(arrived & ~warp.block->barriers_in_use, [&](u32 index) { check.block_barrier_completed(index); });
}

void check_warp_barrier(Warp& warp, const Op& op) {
  AccessCheck& check = *warp.block->check;
  check.pass(warp, warp.active);
  for_each_value(warp, op.a, [&](u32 mask, u32 lanes) {
    if (mask & warp.live & ~lanes) {
      check.arrive_at_warp(warp, lanes, mask);
    } else {
      check.meet(warp, lanes);
    }
  });
  step_at(warp, op).run(warp, op);
}

// What a function's variables held for those that were called before it is nothing to it.
void check_call(Warp& warp, const Op& op) {
  const Frame* caller = warp.frame;
  step_at(warp, op).run(warp, op);
  if (warp.frame == caller) return;  // a fault
  const CompiledFunction& function = *warp.frame->function;
  AccessCheck& check = *warp.block->check;
  check.set_local(warp, warp.active, warp.frame->local_base, function.local_bytes, false);
  for (const LocalPlace& place : function.parameters)
    check.set_local(warp, warp.active, warp.frame->local_base + place.offset, place.bytes, true);
}

void check_return(Warp& warp, const Op& op) {
  const Frame* caller = warp.frame->caller;
  const u32 lanes = warp.active, return_pc = warp.frame->return_pc;
  step_at(warp, op).run(warp, op);
  if (!caller) return;
  for (const LocalPlace& place : warp.block->kernel->calls[warp.code[return_pc - 1].target].results)
    warp.block->check->set_local(warp, lanes, caller->local_base + place.offset, place.bytes, true);
}

void check_native(Warp& warp, const Op& op) {
  constexpr u32 kMostBytes = 8;
  const CheckedStep& step = step_at(warp, op);
  step.run(warp, op);
  const u32 result = warp.block->operands[op.extra + step.arguments];
  if (result == Op::kNone) return;
  warp.block->check->set_local(warp, warp.active, warp.frame->local_base + result, kMostBytes, true);
}

bool starts_with(std::string_view name, std::string_view start) {
  return name.substr(0, start.size()) == start;
}

// Of "u8", "32", "b64", "f16x2": its bytes.
uint32_t bytes_of(std::string_view type) {
  uint32_t bits = 0;
  for (const char c : type) {
    if (c == 'x') return 2 * bits / 8;
    if (c >= '0' && c <= '9') bits = 10 * bits + static_cast<uint32_t>(c - '0');
  }
  return bits / 8;
}

std::optional<At> space_of(std::string_view name) {
  if (name == "global") return At::kGlobal;
  if (name == "shared") return At::kShared;
  if (name == "local") return At::kLocal;
  if (name == "generic") return At::kGeneric;
  return std::nullopt;  // parameters
}

// What the row "ld.shared.u8.wide", "st.global.32" or "atom.add.u32" does; nothing for other rows.
std::optional<CheckedStep> memory_step(const Row& row) {
  const std::string_view name = row.name, behind = name.substr(std::min(name.size(), name.find('.') + 1));
  const std::string_view middle = behind.substr(0, behind.find('.'));
  const std::string_view type = behind.substr(std::min(behind.size(), middle.size() + 1));
  CheckedStep step;
  step.run = row.handler;
  step.element_bytes = bytes_of(type.substr(0, type.find('.')));
  if (starts_with(name, "atom.")) {
    step.kind = Kind::kAtomic;
    return step;
  }
  const auto space = space_of(middle);
  if (!space || (!starts_with(name, "ld.") && !starts_with(name, "st."))) return std::nullopt;
  step.kind = name[0] == 'l' ? Kind::kLoad : Kind::kStore;
  step.space = *space;
  step.slot_bytes = type.find(".wide") != std::string_view::npos || step.element_bytes == 8 ? 8 : 4;
  return step;
}

bool is_sync(std::string_view name) {
  return starts_with(name, "shfl.") || starts_with(name, "vote.") || starts_with(name, "match.") ||
         starts_with(name, "redux.") || starts_with(name, "elect.");
}

using KnownHandlers = std::unordered_map<Handler, CheckedStep>;

void add_handlers_without_rows(KnownHandlers& known) {
  constexpr u32 kBarrierBytes = 8;
  const auto add = [&](Handler handler, Kind kind, u32 bytes = 0) {
    CheckedStep& step = known[handler];
    step.run = handler, step.kind = kind, step.element_bytes = bytes;
  };
  add(block_barrier, Kind::kBlockBarrier);
  add(block_sync, Kind::kBlockBarrier);
  add(warp_barrier, Kind::kWarpBarrier);
  add(multiply_matrices, Kind::kSync);
  for (const Handler handler : {load_matrix, store_matrix, load_small_matrices}) add(handler, Kind::kMatrix);
  for (const Handler handler : {mbarrier_init, mbarrier_invalidate}) add(handler, Kind::kBarrierObject, kBarrierBytes);
  for (const Handler handler : {mbarrier_arrive, mbarrier_arrive_drop, mbarrier_test_state, mbarrier_test_parity})
    add(handler, Kind::kAtomic, kBarrierBytes);
  for (const Handler handler : {call, call_indirect}) add(handler, Kind::kCall);
  add(return_from_call, Kind::kReturn);
  for (const NativeFunction& native : native_functions()) {
    add(native.handler, Kind::kNative);
    known[native.handler].arguments = native.arguments;
  }
}

// What each handler of an instruction set does that checks care about.
KnownHandlers known_handlers(const InstructionSet& instructions) {
  KnownHandlers known;
  for (const Row* row : instructions.all()) {
    if (auto step = memory_step(*row)) known.emplace(row->handler, *step);
    if (is_sync(row->name)) known.emplace(row->handler, CheckedStep{row->handler, Kind::kSync});
  }
  add_handlers_without_rows(known);
  return known;
}

Handler checking(Kind kind) {
  switch (kind) {
    case Kind::kNothing:
      return nullptr;
    case Kind::kLoad:
    case Kind::kStore:
      return check_elements;
    case Kind::kAtomic:
    case Kind::kBarrierObject:
      return check_atomic;
    case Kind::kSync:
      return check_sync;
    case Kind::kMatrix:
      return check_matrix;
    case Kind::kBlockBarrier:
      return check_block_barrier;
    case Kind::kWarpBarrier:
      return check_warp_barrier;
    case Kind::kCall:
      return check_call;
    case Kind::kReturn:
      return check_return;
    case Kind::kNative:
      return check_native;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const CompiledKernel> with_checks(const CompiledKernel& kernel) {
  const KnownHandlers known = known_handlers(*kernel.instructions);
  auto checked = std::make_unique<CompiledKernel>(kernel);
  auto steps = std::make_shared<CheckedCode>();
  steps->steps.resize(kernel.code.size());
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    Op& op = checked->code[i];
    Handler& handler = op.inner ? op.inner : op.run;
    const auto found = known.find(handler);
    if (found == known.end()) continue;
    steps->steps[i] = found->second;
    handler = checking(found->second.kind);
  }
  checked->checked = std::move(steps);
  return checked;
}

}  // namespace heddle::software
