// Special registers: mov from one is an instruction of its own. Op::count says which.

#include "device/software/simt/special.h"

#define HEDDLE_LANES common
#include <time.h>

#include "device/software/simt/instruction_families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software {
namespace {

constexpr std::string_view kNames[] = {
    "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",         "%ntid.y",         "%ntid.z",
    "%ctaid.x",         "%ctaid.y",     "%ctaid.z",     "%nctaid.x",       "%nctaid.y",       "%nctaid.z",
    "%laneid",          "%warpid",      "%nwarpid",     "%smid",           "%nsmid",          "%gridid",
    "%lanemask_eq",     "%lanemask_lt", "%lanemask_le", "%lanemask_gt",    "%lanemask_ge",    "%clock",
    "%clock_hi",        "%clock64",     "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%dynamic_smem_size",
    "%total_smem_size", "%envreg1",     "%envreg2",
};

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The value of a register that is the same for all lanes of a warp.
uint64_t uniform_value(const Warp& warp, Special special) {
  const BlockState& block = *warp.block;
  const LaunchShape& launch = block.launch;
  switch (special) {
    case Special::kNtidX:
      return launch.block.x;
    case Special::kNtidY:
      return launch.block.y;
    case Special::kNtidZ:
      return launch.block.z;
    case Special::kCtaidX:
      return block.index.x;
    case Special::kCtaidY:
      return block.index.y;
    case Special::kCtaidZ:
      return block.index.z;
    case Special::kNctaidX:
      return launch.grid.x;
    case Special::kNctaidY:
      return launch.grid.y;
    case Special::kNctaidZ:
      return launch.grid.z;
    case Special::kWarpId:
      return warp.index;
    case Special::kNwarpId:
      return block.warps.size();
    case Special::kSmId:
      return block.sm;
    case Special::kNsmId:
      return launch.sm_count;
    case Special::kGridId:
      return launch.grid_id;
    case Special::kClock:  // counts at 1 GHz
    case Special::kClock64:
    case Special::kGlobalTimer:
    case Special::kGlobalTimerLo:
      return nanoseconds();
    case Special::kClockHi:
    case Special::kGlobalTimerHi:
      return nanoseconds() >> 32;
    case Special::kDynamicShared:
      return launch.dynamic_shared;
    case Special::kTotalShared:
      return block.shared_bytes;
    case Special::kGridWorkspaceHigh:
      return launch.workspace >> 32;
    case Special::kGridWorkspaceLow:
      return launch.workspace & UINT32_MAX;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Special> find_special(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Special>(i);
  return std::nullopt;
}

namespace common {
namespace {

template <class T>
void read_uniform(Warp& warp, const Op& op) {
  auto value = static_cast<T>(uniform_value(warp, static_cast<Special>(op.count)));
  write_lanes<T>(warp, op.d, [=](u32) { return value; });
}

void read_thread_index(Warp& warp, const Op& op) {
  const uint32_t* index = warp.tid[op.count - static_cast<uint8_t>(Special::kTidX)];
  write_lanes<u32>(warp, op.d, [=](u32 lane) { return index[lane]; });
}

u32 lane_value(Special special, u32 lane) {
  u32 bit = 1u << lane;
  switch (special) {
    case Special::kLaneMaskEq:
      return bit;
    case Special::kLaneMaskLt:
      return bit - 1;
    case Special::kLaneMaskLe:
      return bit | (bit - 1);
    case Special::kLaneMaskGt:
      return ~(bit | (bit - 1));
    case Special::kLaneMaskGe:
      return ~(bit - 1);
    default:
      return lane;
  }
}

void read_lane_value(Warp& warp, const Op& op) {
  auto special = static_cast<Special>(op.count);
  write_lanes<u32>(warp, op.d, [=](u32 lane) { return lane_value(special, lane); });
}

// The address of a variable of the running frame in each thread's local memory.
template <class T>
void local_address(Warp& warp, const Op& op) {
  auto value = static_cast<T>(warp.frame->local_base + static_cast<u64>(op.imm));
  write_lanes<T>(warp, op.d, [=](u32) { return value; });
}

template <class F>
void is_space(Warp& warp, const Op& op) {
  const u64* a = lanes_of<u64>(warp, op.a);
  write_predicate(warp, op.d, mask_of([=](u32 lane) { return F::holds(a[lane] >> 32); }));
}
struct IsGlobal {
  static bool holds(u64 window) { return window < kSharedWindow >> 32; }
};
struct IsShared {
  static bool holds(u64 window) { return window == kSharedWindow >> 32; }
};
struct IsLocal {
  static bool holds(u64 window) { return window == kLocalWindow >> 32; }
};
struct IsParameter {
  static bool holds(u64 window) { return window == kParameterWindow >> 32; }
};

constexpr Row kRows[] = {
    {"local.address.32", local_address<u32>, Width::k32},
    {"local.address.64", local_address<u64>, Width::k64},
    {"isspacep.global", is_space<IsGlobal>, Width::kPredicate, Width::k64},
    {"isspacep.shared", is_space<IsShared>, Width::kPredicate, Width::k64},
    {"isspacep.shared::cta", is_space<IsShared>, Width::kPredicate, Width::k64},
    {"isspacep.local", is_space<IsLocal>, Width::kPredicate, Width::k64},
    {"isspacep.param", is_space<IsParameter>, Width::kPredicate, Width::k64},
    {"special.thread", read_thread_index, Width::k32},
    {"special.lane", read_lane_value, Width::k32},
    {"special.uniform.32", read_uniform<u32>, Width::k32},
    {"special.uniform.64", read_uniform<u64>, Width::k64},
};

}  // namespace

std::span<const Row> special_rows() {
  return kRows;
}

}  // namespace common
}  // namespace heddle::software
