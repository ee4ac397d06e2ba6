// ld: from every state space, 1 to 8 elements. Names are ld.<space>.<type>; ".wide" where a 64-bit register receives a
// narrower type, extended by its sign or with zeros.

#include "device/software/simt/lanes/access.h"
#include "device/software/simt/lanes/families.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

// Register of element i of the vector.
u32 element(const Warp& warp, const Op& op, u32 i) {
  return op.count == 1 ? op.d : warp.block->operands[op.extra + i];
}

template <class T, class R>
[[gnu::always_inline]] inline R fetch(u64 host) {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(host), sizeof value);
  return static_cast<R>(static_cast<std::conditional_t<(T(-1) < T(0)), s64, u64>>(value));
}

// A single element each, of all lanes, by groups.
template <class T, class R>
[[gnu::always_inline]] inline void fetch_groups(R* d, Access::Shape shape, const u64* host) {
  for (u32 group = 0; group < kLanes / kGroup; ++group) {
    Group<T> values;
    if (shape == Access::Shape::kRuns) {
      __builtin_memcpy(&values, reinterpret_cast<const void*>(host[group]), sizeof values);
    } else {
      T value;
      __builtin_memcpy(&value, reinterpret_cast<const void*>(host[group]), sizeof value);
      values = Group<T>{} + value;
    }
    reinterpret_cast<Group<R>*>(d)[group] = __builtin_convertvector(values, Group<R>);
  }
}

// Element `i` of each lane's vector. Its own function, shared by all state spaces.
template <class T, class R>
[[gnu::noinline]] void fetch_element(Warp& warp, const Op& op, Access::Shape shape, const u64* host, u32 i) {
  using Shape = Access::Shape;
  u32 offset = element(warp, op, i);
  if (offset == Op::kNone) return;
  const u64 at = i * sizeof(T), first = host[0] + at;
  if (shape == Shape::kRow && op.count == 1)
    return write_lanes<R>(warp, offset, [=](u32 lane) { return fetch<T, R>(first + lane * sizeof(T)); });
  if (shape == Shape::kUniform) {
    R value = fetch<T, R>(first);
    return write_lanes<R>(warp, offset, [=](u32) { return value; });
  }
  if (shape == Shape::kRow) {
    const u64 step = op.count * sizeof(T);
    return write_lanes<R>(warp, offset, [=](u32 lane) { return fetch<T, R>(first + lane * step); });
  }
  if (shape == Shape::kScattered)
    return write_lanes<R>(warp, offset, [=](u32 lane) { return fetch<T, R>(host[lane] + at); });
  fetch_groups<T, R>(lanes_of<R>(warp, offset), shape, host);
}

// One element each of all lanes, side by side.
template <class T, class R>
[[gnu::always_inline]] inline void fetch_row(Warp& warp, const Op& op, u64 host) {
  R* d = lanes_of<R>(warp, op.d);
  HEDDLE_INDEPENDENT_LANES
  for (u32 lane = 0; lane < kLanes; ++lane) d[lane] = fetch<T, R>(host + lane * sizeof(T));
}

template <At kSpace, class T, class R>
[[gnu::noinline]] void load_located(Warp& warp, const Op& op) {
  Access access;
  if (!locate<kSpace>(warp, op, op.count * sizeof(T), false, access)) return;
  for (u32 i = 0; i < op.count; ++i) fetch_element<T, R>(warp, op, access.shape, access.host, i);
  remember<kSpace>(warp, op, access);
}

template <At kSpace, class T, class R>
void load(Warp& warp, const Op& op) {
  if constexpr (kSpace == At::kGlobal) {
    u64 host;
    if (locate_row(warp, op, sizeof(T), false, host)) return fetch_row<T, R>(warp, op, host);
  }
  if (const KnownAccess* known = known_access<kSpace>(warp, op)) {
    if (known->shape == Access::Shape::kRow && warp.active == kAllLanes)
      return fetch_row<T, R>(warp, op, known->host[0]);
    return fetch_element<T, R>(warp, op, known->shape, known->host, 0);
  }
  load_located<kSpace, T, R>(warp, op);
}

// A kernel parameter at a fixed place: the same for all lanes, checked when the kernel was compiled.
template <class T, class R>
void load_parameter(Warp& warp, const Op& op) {
  for (u32 i = 0; i < op.count; ++i) {
    u32 offset = element(warp, op, i);
    if (offset == Op::kNone) continue;
    auto from = reinterpret_cast<u64>(warp.block->parameters) + static_cast<u64>(op.imm) + i * sizeof(T);
    R value = fetch<T, R>(from);
    write_lanes<R>(warp, offset, [=](u32) { return value; });
  }
}

#define TYPE_ROWS(SPACE, AT)                                                                        \
  {"ld." SPACE ".u8", load<AT, u8, u32>}, {"ld." SPACE ".s8", load<AT, s8, u32>},                   \
      {"ld." SPACE ".u16", load<AT, u16, u32>}, {"ld." SPACE ".s16", load<AT, s16, u32>},           \
      {"ld." SPACE ".32", load<AT, u32, u32>}, {"ld." SPACE ".64", load<AT, u64, u64>},             \
      {"ld." SPACE ".u8.wide", load<AT, u8, u64>}, {"ld." SPACE ".s8.wide", load<AT, s8, u64>},     \
      {"ld." SPACE ".u16.wide", load<AT, u16, u64>}, {"ld." SPACE ".s16.wide", load<AT, s16, u64>}, \
      {"ld." SPACE ".u32.wide", load<AT, u32, u64>}, {                                              \
    "ld." SPACE ".s32.wide", load<AT, s32, u64>                                                     \
  }

constexpr Row kRows[] = {
    TYPE_ROWS("global", At::kGlobal),
    TYPE_ROWS("shared", At::kShared),
    TYPE_ROWS("local", At::kLocal),
    TYPE_ROWS("param", At::kParameter),
    TYPE_ROWS("generic", At::kGeneric),
    {"ld.fixed.u8", load_parameter<u8, u32>},
    {"ld.fixed.s8", load_parameter<s8, u32>},
    {"ld.fixed.u16", load_parameter<u16, u32>},
    {"ld.fixed.s16", load_parameter<s16, u32>},
    {"ld.fixed.32", load_parameter<u32, u32>},
    {"ld.fixed.64", load_parameter<u64, u64>},
    {"ld.fixed.u8.wide", load_parameter<u8, u64>},
    {"ld.fixed.s8.wide", load_parameter<s8, u64>},
    {"ld.fixed.u16.wide", load_parameter<u16, u64>},
    {"ld.fixed.s16.wide", load_parameter<s16, u64>},
    {"ld.fixed.u32.wide", load_parameter<u32, u64>},
    {"ld.fixed.s32.wide", load_parameter<s32, u64>},
};

}  // namespace

std::span<const Row> load_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
