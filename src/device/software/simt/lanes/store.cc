// st: to every writable state space, 1 to 8 elements. Names are st.<space>.<bits>; ".wide" where the low part of a
// 64-bit register is stored. Where lanes store to the same place, the highest lane's value stays.

#include "device/software/simt/lanes/access.h"
#include "device/software/simt/lanes/families.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

u32 element(const Warp& warp, const Op& op, u32 i) {
  return op.count == 1 ? op.d : warp.block->operands[op.extra + i];
}

template <class T, class R>
[[gnu::always_inline]] inline void put(u64 host, R value) {
  T narrow = static_cast<T>(value);
  __builtin_memcpy(reinterpret_cast<void*>(host), &narrow, sizeof narrow);
}

// A single element each, of all lanes, by groups.
template <class T, class R>
[[gnu::always_inline]] inline void put_groups(const R* d, Access::Shape shape, const u64* host) {
  for (u32 group = 0; group < kLanes / kGroup; ++group, d += kGroup) {
    u64 to = host[group];
    if (shape == Access::Shape::kRuns) {
      HEDDLE_INDEPENDENT_LANES
      for (u32 lane = 0; lane < kGroup; ++lane) put<T, R>(to + lane * sizeof(T), d[lane]);
    } else {
      put<T, R>(to, d[kGroup - 1]);
    }
  }
}

// One element each of the first `count` lanes, side by side.
template <class T, class R>
[[gnu::always_inline]] inline void put_row(const Warp& warp, const Op& op, u64 host, u32 count = kLanes) {
  const R* d = lanes_of<R>(warp, op.d);
  HEDDLE_INDEPENDENT_LANES
  for (u32 lane = 0; lane < count; ++lane) put<T, R>(host + lane * sizeof(T), d[lane]);
}

// Element `i` of each lane's vector. Its own function, shared by all state spaces.
template <class T, class R>
[[gnu::noinline]] void put_element(Warp& warp, const Op& op, Access::Shape shape, const u64* host, u32 i) {
  using Shape = Access::Shape;
  const R* d = lanes_of<R>(warp, element(warp, op, i));
  const u64 at = i * sizeof(T), first = host[0] + at;
  u32 active = warp.active;
  const bool first_lanes = (active & (active + 1)) == 0;
  if (shape == Shape::kRow && op.count == 1 && first_lanes) {
    put_row<T, R>(warp, op, first, static_cast<u32>(__builtin_popcount(active)));
  } else if (shape == Shape::kUniform) {
    put<T, R>(first, d[31 - __builtin_clz(active)]);
  } else if (shape == Shape::kRuns || shape == Shape::kSplats) {
    put_groups<T, R>(d, shape, host);
  } else {
    const bool row = shape == Shape::kRow;
    const u64 step = op.count * sizeof(T);
    for (u32 rest = active; rest; rest &= rest - 1) {
      auto lane = static_cast<u32>(__builtin_ctz(rest));
      put<T, R>(row ? first + lane * step : host[lane] + at, d[lane]);
    }
  }
}

template <At kSpace, class T, class R>
[[gnu::noinline]] void store_located(Warp& warp, const Op& op) {
  Access access;
  if (!locate<kSpace>(warp, op, op.count * sizeof(T), true, access)) return;
  for (u32 i = 0; i < op.count; ++i) put_element<T, R>(warp, op, access.shape, access.host, i);
  remember<kSpace>(warp, op, access);
}

template <At kSpace, class T, class R>
void store(Warp& warp, const Op& op) {
  if constexpr (kSpace == At::kGlobal) {
    u64 host;
    if (locate_row(warp, op, sizeof(T), true, host)) return put_row<T, R>(warp, op, host);
  }
  if (const KnownAccess* known = known_access<kSpace>(warp, op)) {
    if (known->shape == Access::Shape::kRow && warp.active == kAllLanes) return put_row<T, R>(warp, op, known->host[0]);
    return put_element<T, R>(warp, op, known->shape, known->host, 0);
  }
  store_located<kSpace, T, R>(warp, op);
}

#define BITS_ROWS(SPACE, AT)                                                                        \
  {"st." SPACE ".8", store<AT, u8, u32>}, {"st." SPACE ".16", store<AT, u16, u32>},                 \
      {"st." SPACE ".32", store<AT, u32, u32>}, {"st." SPACE ".64", store<AT, u64, u64>},           \
      {"st." SPACE ".8.wide", store<AT, u8, u64>}, {"st." SPACE ".16.wide", store<AT, u16, u64>}, { \
    "st." SPACE ".32.wide", store<AT, u32, u64>                                                     \
  }

constexpr Row kRows[] = {
    BITS_ROWS("global", At::kGlobal),
    BITS_ROWS("shared", At::kShared),
    BITS_ROWS("local", At::kLocal),
    BITS_ROWS("generic", At::kGeneric),
};

}  // namespace

std::span<const Row> store_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
