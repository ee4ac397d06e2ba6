#include "device/software/simt/mbarrier.h"

#define HEDDLE_LANES common
#include <bit>
#include <cstring>

#include "device/software/simt/lanes/access.h"

namespace heddle::software {
namespace {

using common::u32;
using common::u64;

constexpr u64 kMostArrivals = (1u << 20) - 1;  // of one phase, as PTX limits it

// What the 64 bits hold.
struct State {
  u64 pending : 20;   // arrivals that the phase still waits for
  u64 expected : 20;  // arrivals of a phase
  u64 phase : 24;
};

common::Access located(Warp& warp, const Op& op, bool& good) {
  common::Access access;
  good = static_cast<At>(op.count) == At::kShared ? common::locate_lanes<At::kShared>(warp, op, 8, true, access)
                                                  : common::locate_lanes<At::kGeneric>(warp, op, 8, true, access);
  return access;
}

// Calls visit(lane, state) for each active lane in turn and writes the state back.
template <class Visit>
void for_each_state(Warp& warp, const Op& op, Visit visit) {
  bool good = false;
  common::Access access = located(warp, op, good);
  if (!good) return;
  for (u32 rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<u32>(std::countr_zero(rest));
    auto* at = reinterpret_cast<void*>(access.host[lane]);
    State state;
    std::memcpy(&state, at, sizeof state);
    if (!visit(lane, state)) return;
    std::memcpy(at, &state, sizeof state);
  }
}

u32 count_of(const Warp& warp, const Op& op, u32 lane) {
  return op.b == Op::kNone ? 1 : common::lanes_of<u32>(warp, op.b)[lane];
}

void arrive(Warp& warp, const Op& op, bool drop) {
  for_each_state(warp, op, [&](u32 lane, State& state) {
    u32 count = count_of(warp, op, lane);
    if (op.d != Op::kNone) common::lanes_of<u64>(warp, op.d)[lane] = std::bit_cast<u64>(state);
    if (count == 0 || count > state.pending)
      return raise(warp, op, lane, kCudaLaunchFailure, "mbarrier: more arrivals than the phase expects"), false;
    state.pending -= count;
    if (drop) state.expected -= count;
    if (state.pending == 0) {
      ++state.phase;
      state.pending = state.expected;
    }
    return true;
  });
}

// Whoever asks is likely to ask again until another warp has arrived.
template <class Over>
void test(Warp& warp, const Op& op, Over over) {
  ++warp.polls;
  u32 result = 0;
  for_each_state(warp, op, [&](u32 lane, State& state) {
    result |= static_cast<u32>(over(lane, state) ? 1 : 0) << lane;
    return true;
  });
  common::write_predicate(warp, op.d, result);
}

}  // namespace

void mbarrier_init(Warp& warp, const Op& op) {
  for_each_state(warp, op, [&](u32 lane, State& state) {
    u32 count = count_of(warp, op, lane);
    if (count == 0 || count > kMostArrivals)
      return raise(warp, op, lane, kCudaLaunchFailure, "mbarrier.init with a count outside of 1 to 2^20-1"), false;
    state = {count, count, 0};
    return true;
  });
}

void mbarrier_invalidate(Warp& warp, const Op& op) {
  for_each_state(warp, op, [](u32, State& state) {
    state = {};
    return true;
  });
}

void mbarrier_arrive(Warp& warp, const Op& op) {
  arrive(warp, op, false);
}

void mbarrier_arrive_drop(Warp& warp, const Op& op) {
  arrive(warp, op, true);
}

void mbarrier_test_state(Warp& warp, const Op& op) {
  const u64* states = common::lanes_of<u64>(warp, op.b);
  test(warp, op, [=](u32 lane, const State& now) { return std::bit_cast<State>(states[lane]).phase != now.phase; });
}

void mbarrier_test_parity(Warp& warp, const Op& op) {
  const u32* parities = common::lanes_of<u32>(warp, op.b);
  test(warp, op, [=](u32 lane, const State& now) { return (now.phase & 1) != (parities[lane] & 1); });
}

void mbarrier_pending_count(Warp& warp, const Op& op) {
  const u64* states = common::lanes_of<u64>(warp, op.a);
  common::write_lanes<u32>(warp, op.d,
                           [=](u32 lane) { return static_cast<u32>(std::bit_cast<State>(states[lane]).pending); });
}

}  // namespace heddle::software
