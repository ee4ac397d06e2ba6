#pragma once

// 16-bit floats. Their arithmetic is done in f64, rounded to odd, and encoded once: rounding to odd keeps what the
// second rounding needs to know (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).

#include "device/software/simt/lanes/floating.h"

namespace heddle::software::HEDDLE_LANES {

// f16 and bf16: their bits, and how many of them are exponent and fraction.
struct Half {
  static constexpr int kExponent = 5, kFraction = 10;
  u16 bits = 0;
  Half() = default;
  explicit Half(u32 value) : bits(static_cast<u16>(value)) {}
  explicit operator u32() const { return bits; }
};
struct Brain {
  static constexpr int kExponent = 8, kFraction = 7;
  u16 bits = 0;
  Brain() = default;
  explicit Brain(u32 value) : bits(static_cast<u16>(value)) {}
  explicit operator u32() const { return bits; }
};
// tf32: an f32 whose 13 lowest bits do not count.
struct Tensor {
  static constexpr int kExponent = 8, kFraction = 10;
};

// Exact. The product scales subnormal numbers up as well.
[[gnu::always_inline]] inline f32 widen(Half a) {
  u32 magnitude = static_cast<u32>(a.bits & 0x7FFF) << 13, sign = static_cast<u32>(a.bits & 0x8000) << 16;
  f32 scaled = float_of(magnitude) * 0x1p112f;
  u32 special = magnitude | 0x7F800000u;
  return float_of(sign | (magnitude >= 0x0F800000u ? special : bits_of(scaled)));
}
[[gnu::always_inline]] inline f32 widen(Brain a) {
  return float_of(static_cast<u32>(a.bits) << 16);
}

enum class Rounding { kNearest, kZero, kDown, kUp, kNearestAway };

// Whether a magnitude is rounded up whose last bits `rest` are cut off; `half` is half of the last place that stays.
template <Rounding kRounding>
[[gnu::always_inline]] inline bool rounds_up(u64 kept, u64 rest, u64 half, bool negative) {
  switch (kRounding) {
    case Rounding::kNearest:
      return rest > half || (rest == half && (kept & 1));
    case Rounding::kNearestAway:
      return rest >= half;
    case Rounding::kDown:
      return negative && rest != 0;
    case Rounding::kUp:
      return !negative && rest != 0;
    case Rounding::kZero:
      break;
  }
  return false;
}

// The bits of `value` in Format, rounded once; NaN becomes the one with all bits but the sign set.
template <class Format, Rounding kRounding>
[[gnu::always_inline]] inline u32 encode(f64 value) {
  constexpr s32 kBias = (1 << (Format::kExponent - 1)) - 1;
  constexpr u64 kInfinity = ((u64{1} << Format::kExponent) - 1) << Format::kFraction;
  constexpr u64 kNan = (u64{1} << (Format::kExponent + Format::kFraction)) - 1;
  constexpr u64 kFractionMask = (u64{1} << 52) - 1;
  u64 bits = bits_of(value), magnitude = bits & FloatBits<f64>::kNaN;
  bool negative = bits >> 63;
  s32 exponent = static_cast<s32>(magnitude >> 52) - 1023;
  s32 unit = exponent > 1 - kBias ? exponent : 1 - kBias;
  s32 drop = 52 - Format::kFraction + unit - exponent;
  drop = drop > 63 ? 63 : drop;
  u64 significand = (magnitude & kFractionMask) | (exponent > -1023 ? u64{1} << 52 : 0);
  u64 kept = significand >> drop, rest = significand & ((u64{1} << drop) - 1), half = u64{1} << (drop - 1);
  kept += rounds_up<kRounding>(kept, rest, half, negative) ? 1 : 0;
  u64 result = (static_cast<u64>(unit + kBias - 1) << Format::kFraction) + kept;
  bool outward = kRounding == Rounding::kNearest || kRounding == Rounding::kNearestAway ||
                 (kRounding == Rounding::kDown && negative) || (kRounding == Rounding::kUp && !negative);
  result = result < kInfinity ? result : outward ? kInfinity : kInfinity - 1;
  result = magnitude < FloatBits<f64>::kExponent ? result : kInfinity;
  result |= static_cast<u64>(negative ? 1 : 0) << (Format::kExponent + Format::kFraction);
  return static_cast<u32>(magnitude > FloatBits<f64>::kExponent ? kNan : result);
}
template <class T>
[[gnu::always_inline]] inline T nearest(f64 value) {
  return T(encode<T, Rounding::kNearest>(value));
}

// .ftz of f16.
[[gnu::always_inline]] inline Half flush(Half a) {
  return a.bits & 0x7C00 ? a : Half(a.bits & 0x8000u);
}

// a * b + c, rounded to odd. The product of 16-bit floats is exact in f64.
[[gnu::always_inline]] inline f64 fused_to_odd(f64 a, f64 b, f64 c) {
  f64 product = a * b, sum = product + c;
  f64 from_c = sum - product;
  f64 error = (product - (sum - from_c)) + (c - from_c);  // exact (Knuth's TwoSum); NaN if the sum is not finite
  bool inexact = (error > 0 || error < 0) && (bits_of(sum) & 1) == 0;
  bool outward = (error > 0) == (sum > 0);
  return inexact ? float_of(bits_of(sum) + (outward ? u64{1} : ~u64{0})) : sum;
}

// F on both halves of packed values.
template <class F, class T>
struct OnBoth {
  template <class... S>
  static u32 apply(S... sources) {
    u32 low = static_cast<u32>(F::apply(T(sources)...)), high = static_cast<u32>(F::apply(T(sources >> 16)...));
    return high << 16 | low;
  }
};

}  // namespace heddle::software::HEDDLE_LANES
