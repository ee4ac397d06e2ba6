#pragma once

// Loops over the 32 lanes of a register. Files that include this are compiled once for each level of the host's vector
// instructions, with HEDDLE_LANES naming the namespace; see row.h for what they may not use.

#include <cstdint>

#include "device/software/simt/block_state.h"
#include "device/software/simt/row.h"
#include "device/software/simt/warp.h"

#ifndef HEDDLE_LANES
#error "HEDDLE_LANES must name the namespace of this level of vector instructions"
#endif

// Before a loop over lanes: a register may be source and destination at once, but then lane by lane.
#ifdef __clang__
#define HEDDLE_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define HEDDLE_INDEPENDENT_LANES _Pragma("GCC ivdep")
#endif

namespace heddle::software::HEDDLE_LANES {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;
using f32 = float;
using f64 = double;

// What a lane of a type is stored as: types narrower than 32 bits use the low part of 32.
template <class T>
struct SlotOf {
  using type = u32;
};
template <>
struct SlotOf<u64> {
  using type = u64;
};
template <>
struct SlotOf<s64> {
  using type = u64;
};
template <>
struct SlotOf<f32> {
  using type = f32;
};
template <>
struct SlotOf<f64> {
  using type = f64;
};
template <class T>
using Slot = typename SlotOf<T>::type;

template <class T>
inline constexpr Width kWidth = sizeof(T) == 8 ? Width::k64 : Width::k32;

template <class T>
[[gnu::always_inline]] inline Slot<T>* lanes_of(const Warp& warp, u32 offset) {
  return static_cast<Slot<T>*>(__builtin_assume_aligned(warp.registers + offset, 64));
}

template <class T>
[[gnu::always_inline]] inline T read(const Slot<T>* lanes, u32 lane) {
  return static_cast<T>(lanes[lane]);
}

// Signed types are extended to their slot, so that a wider register holds the right value too.
template <class T>
[[gnu::always_inline]] inline Slot<T> to_slot(T value) {
  return static_cast<Slot<T>>(value);
}

[[gnu::always_inline]] inline u32& predicate(const Warp& warp, u32 offset) {
  return *reinterpret_cast<u32*>(warp.registers + offset);
}

// d[lane] = f(lane) for the active lanes. `f` runs for all 32: it must not have effects, nor trap.
template <class D, class F>
[[gnu::always_inline]] inline void write_lanes(Warp& warp, u32 offset, F f) {
  Slot<D>* d = lanes_of<D>(warp, offset);
  if (__builtin_expect(warp.active == kAllLanes, 1)) {
    HEDDLE_INDEPENDENT_LANES
    for (u32 lane = 0; lane < kLanes; ++lane) d[lane] = to_slot<D>(f(lane));
    return;
  }
  alignas(64) Slot<D> result[kLanes];
  for (u32 lane = 0; lane < kLanes; ++lane) result[lane] = to_slot<D>(f(lane));
  u32 active = warp.active;
  for (u32 lane = 0; lane < kLanes; ++lane) d[lane] = active >> lane & 1 ? result[lane] : d[lane];
}

[[gnu::always_inline]] inline void write_predicate(Warp& warp, u32 offset, u32 mask) {
  u32& d = predicate(warp, offset);
  d = (d & ~warp.active) | (mask & warp.active);
}

// The mask of the lanes for which `f` holds.
template <class F>
[[gnu::always_inline]] inline u32 mask_of(F f) {
  u32 mask = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) mask |= static_cast<u32>(f(lane) ? 1 : 0) << lane;
  return mask;
}

template <class F, class D, class A>
void unary_handler(Warp& warp, const Op& op) {
  const Slot<A>* a = lanes_of<A>(warp, op.a);
  write_lanes<D>(warp, op.d, [=](u32 l) { return F::apply(read<A>(a, l)); });
}

template <class F, class D, class A, class B>
void binary_handler(Warp& warp, const Op& op) {
  const Slot<A>* a = lanes_of<A>(warp, op.a);
  const Slot<B>* b = lanes_of<B>(warp, op.b);
  write_lanes<D>(warp, op.d, [=](u32 l) { return F::apply(read<A>(a, l), read<B>(b, l)); });
}

template <class F, class D, class A, class B, class C>
void ternary_handler(Warp& warp, const Op& op) {
  const Slot<A>* a = lanes_of<A>(warp, op.a);
  const Slot<B>* b = lanes_of<B>(warp, op.b);
  const Slot<C>* c = lanes_of<C>(warp, op.c);
  write_lanes<D>(warp, op.d, [=](u32 l) { return F::apply(read<A>(a, l), read<B>(b, l), read<C>(c, l)); });
}

// Rows for a functor F with static apply(): d = F(a), F(a, b), F(a, b, c), types in that order.
template <class F, class D, class A = D>
constexpr Row unary(const char* name) {
  return {name, unary_handler<F, D, A>, kWidth<D>, kWidth<A>};
}
template <class F, class D, class A = D, class B = A>
constexpr Row binary(const char* name) {
  return {name, binary_handler<F, D, A, B>, kWidth<D>, kWidth<A>, kWidth<B>};
}
template <class F, class D, class A = D, class B = A, class C = D>
constexpr Row ternary(const char* name) {
  return {name, ternary_handler<F, D, A, B, C>, kWidth<D>, kWidth<A>, kWidth<B>, kWidth<C>};
}

}  // namespace heddle::software::HEDDLE_LANES
