// Instructions in which the lanes of a warp look at each other: shfl, vote, match, redux, activemask. The .sync ones
// first wait for the lanes that their mask names.

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "device/software/simt/barrier.h"
#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

// Runs `operate` with only those lanes active whose group is complete; the others wait.
template <class F>
[[gnu::always_inline]] inline void with_gathered(Warp& warp, const Op& op, u32 mask_offset, F operate) {
  const u32* masks = lanes_of<u32>(warp, mask_offset);
  u32 ready = gather_lanes(warp, op, masks);
  if (!ready) return;
  u32 before = warp.active;
  warp.active = ready;
  operate(masks);
  warp.active = before & ready;
}

// Which lane each mode reads, and whether that is in range; bounds are those of PTX's description of shfl.
enum class Shuffle { kUp, kDown, kButterfly, kIndex };
template <Shuffle kMode>
[[gnu::always_inline]] inline bool source_lane(u32 lane, u32 b, u32 c, u32& source) {
  u32 segment = c >> 8 & 31, clamp = c & 31, by = b & 31;
  u32 lowest = lane & segment, highest = lowest | (clamp & ~segment);
  s32 from = static_cast<s32>(lane);
  bool in_range = true;
  switch (kMode) {
    case Shuffle::kUp:
      from -= static_cast<s32>(by);
      in_range = from >= static_cast<s32>(highest);
      break;
    case Shuffle::kDown:
      from += static_cast<s32>(by);
      in_range = from <= static_cast<s32>(highest);
      break;
    case Shuffle::kButterfly:
      from ^= static_cast<s32>(by);
      in_range = from <= static_cast<s32>(highest);
      break;
    case Shuffle::kIndex:
      from = static_cast<s32>(lowest | (by & ~segment));
      in_range = from <= static_cast<s32>(highest);
      break;
  }
  source = in_range ? static_cast<u32>(from) : lane;
  return in_range;
}

// result[lane] = a[source[lane]]; all are aligned.
[[gnu::always_inline]] inline void permute(const u32* a, const u32* source, u32* result) {
#ifdef __AVX512F__
  __m512i low = _mm512_load_si512(a), high = _mm512_load_si512(a + kLanes / 2);
  for (u32 half = 0; half < kLanes; half += kLanes / 2)
    _mm512_store_si512(result + half, _mm512_permutex2var_epi32(low, _mm512_load_si512(source + half), high));
#else
  for (u32 lane = 0; lane < kLanes; ++lane) result[lane] = a[source[lane]];
#endif
}

// A lane that does not run the instruction has nothing to give: whoever reads it gets 0, as on a device.
[[gnu::always_inline]] inline void without_inactive(u32 active, const u32* source, u32* result) {
  if (active == kAllLanes) return;
  for (u32 lane = 0; lane < kLanes; ++lane) result[lane] = active >> source[lane] & 1 ? result[lane] : 0;
}

// shfl.sync d|p, a, b, c, mask: b in op.b, c in op.c, mask in op.extra, p in op.target. In steps that are vectors each.
template <Shuffle kMode>
void shuffle(Warp& warp, const Op& op) {
  with_gathered(warp, op, op.extra, [&](const u32*) {
    const u32* a = lanes_of<u32>(warp, op.a);
    const u32* b = lanes_of<u32>(warp, op.b);
    const u32* c = lanes_of<u32>(warp, op.c);
    alignas(64) u32 source[kLanes], in_range[kLanes], result[kLanes];
    for (u32 lane = 0; lane < kLanes; ++lane)
      in_range[lane] = source_lane<kMode>(lane, b[lane], c[lane], source[lane]) ? 1 : 0;
    permute(a, source, result);
    without_inactive(warp.active, source, result);
    if (op.d != Op::kNone) write_lanes<u32>(warp, op.d, [&](u32 lane) { return result[lane]; });
    if (op.target != Op::kNone)
      write_predicate(warp, op.target, mask_of([&](u32 lane) { return in_range[lane] != 0; }));
  });
}

// vote.sync: the predicate a, negated if flags say so, over the lanes of each lane's mask.
enum class Vote { kAll, kAny, kUniform, kBallot };
template <Vote kKind>
void vote(Warp& warp, const Op& op) {
  with_gathered(warp, op, op.b, [&](const u32* masks) {
    u32 holds = predicate(warp, op.a);
    if (op.flags & kNegateC) holds = ~holds;
    holds &= warp.active;
    if (kKind == Vote::kBallot) return write_lanes<u32>(warp, op.d, [&](u32 lane) { return holds & masks[lane]; });
    u32 active = warp.active;
    write_predicate(warp, op.d, mask_of([&](u32 lane) {
                      u32 members = masks[lane] & active, with = holds & members;
                      bool all = with == members, none = with == 0;
                      return kKind == Vote::kAll ? all : kKind == Vote::kAny ? !none : all || none;
                    }));
  });
}

// match.any: the lanes of the mask with the same value. match.all: the mask if all have it, else 0, and whether so.
template <class T, bool kAll>
void match(Warp& warp, const Op& op) {
  with_gathered(warp, op, op.b, [&](const u32* masks) {
    const Slot<T>* a = lanes_of<T>(warp, op.a);
    alignas(64) u32 result[kLanes] = {};
    u32 all_same = 0;
    for (u32 rest = warp.active; rest; rest &= rest - 1) {
      auto lane = static_cast<u32>(__builtin_ctz(rest));
      u32 members = masks[lane] & warp.active;
      u32 same = members & mask_of([=](u32 other) { return a[other] == a[lane]; });
      bool all = same == members;
      all_same |= static_cast<u32>(all ? 1 : 0) << lane;
      result[lane] = !kAll || all ? same : 0;
    }
    write_lanes<u32>(warp, op.d, [&](u32 lane) { return result[lane]; });
    if (op.target != Op::kNone) write_predicate(warp, op.target, all_same);
  });
}

struct Sum {
  static u32 apply(u32 a, u32 b) { return a + b; }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct And {
  static u32 apply(u32 a, u32 b) { return a & b; }
};
struct Or {
  static u32 apply(u32 a, u32 b) { return a | b; }
};
struct Xor {
  static u32 apply(u32 a, u32 b) { return a ^ b; }
};
template <class F, class T>
void reduce(Warp& warp, const Op& op) {
  with_gathered(warp, op, op.b, [&](const u32* masks) {
    const u32* a = lanes_of<u32>(warp, op.a);
    alignas(64) u32 result[kLanes] = {};
    for (u32 rest = warp.active; rest;) {
      u32 group = masks[__builtin_ctz(rest)] & rest;
      if (!group) group = rest & -rest;
      T value = static_cast<T>(a[__builtin_ctz(group)]);
      for (u32 others = group & (group - 1); others; others &= others - 1)
        value = F::apply(value, static_cast<T>(a[__builtin_ctz(others)]));
      for (u32 members = group; members; members &= members - 1)
        result[__builtin_ctz(members)] = static_cast<u32>(value);
      rest &= ~group;
    }
    write_lanes<u32>(warp, op.d, [&](u32 lane) { return result[lane]; });
  });
}

// elect.sync d|p, mask: the lowest lane of the mask.
void elect(Warp& warp, const Op& op) {
  with_gathered(warp, op, op.b, [&](const u32* masks) {
    u32 active = warp.active;
    auto leader = [=](u32 lane) {
      u32 members = masks[lane] & active;
      return members ? static_cast<u32>(__builtin_ctz(members)) : lane;
    };
    if (op.d != Op::kNone) write_lanes<u32>(warp, op.d, leader);
    if (op.target != Op::kNone)
      write_predicate(warp, op.target, mask_of([&](u32 lane) { return leader(lane) == lane; }));
  });
}

void active_mask(Warp& warp, const Op& op) {
  u32 active = warp.active;
  write_lanes<u32>(warp, op.d, [=](u32) { return active; });
}

constexpr Row kRows[] = {
    {"shfl.sync.up.b32", shuffle<Shuffle::kUp>},
    {"shfl.sync.down.b32", shuffle<Shuffle::kDown>},
    {"shfl.sync.bfly.b32", shuffle<Shuffle::kButterfly>},
    {"shfl.sync.idx.b32", shuffle<Shuffle::kIndex>},
    {"vote.sync.all.pred", vote<Vote::kAll>, Width::kPredicate},
    {"vote.sync.any.pred", vote<Vote::kAny>, Width::kPredicate},
    {"vote.sync.uni.pred", vote<Vote::kUniform>, Width::kPredicate},
    {"vote.sync.ballot.b32", vote<Vote::kBallot>, Width::k32},
    {"match.any.sync.b32", match<u32, false>, Width::k32, Width::k32},
    {"match.any.sync.b64", match<u64, false>, Width::k32, Width::k64},
    {"match.all.sync.b32", match<u32, true>, Width::k32, Width::k32},
    {"match.all.sync.b64", match<u64, true>, Width::k32, Width::k64},
    {"redux.sync.add.u32", reduce<Sum, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.add.s32", reduce<Sum, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.min.u32", reduce<Minimum, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.min.s32", reduce<Minimum, s32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.max.u32", reduce<Maximum, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.max.s32", reduce<Maximum, s32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.and.b32", reduce<And, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.or.b32", reduce<Or, u32>, Width::k32, Width::k32, Width::k32},
    {"redux.sync.xor.b32", reduce<Xor, u32>, Width::k32, Width::k32, Width::k32},
    {"elect.sync", elect},
    {"activemask.b32", active_mask, Width::k32},
};

}  // namespace

std::span<const Row> warp_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
