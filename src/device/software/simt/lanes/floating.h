#pragma once

// What the floating-point families share: bits, flushing, saturation, minimum and maximum.

#include <xmmintrin.h>

#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {

[[gnu::always_inline]] inline u32 bits_of(f32 a) {
  return __builtin_bit_cast(u32, a);
}
[[gnu::always_inline]] inline u64 bits_of(f64 a) {
  return __builtin_bit_cast(u64, a);
}
[[gnu::always_inline]] inline f32 float_of(u32 bits) {
  return __builtin_bit_cast(f32, bits);
}
[[gnu::always_inline]] inline f64 float_of(u64 bits) {
  return __builtin_bit_cast(f64, bits);
}

template <class T>
struct FloatBits;
template <>
struct FloatBits<f32> {
  static constexpr u32 kSign = 1u << 31, kExponent = 0x7F800000u, kNaN = 0x7FFFFFFFu;
};
template <>
struct FloatBits<f64> {
  static constexpr u64 kSign = 1ull << 63, kExponent = 0x7FF0000000000000ull, kNaN = 0x7FFFFFFFFFFFFFFFull;
};

// .ftz: subnormal numbers count as zero of the same sign.
[[gnu::always_inline]] inline f32 flush(f32 a) {
  bool subnormal = (bits_of(a) & FloatBits<f32>::kExponent) == 0;
  return subnormal ? float_of(bits_of(a) & FloatBits<f32>::kSign) : a;
}

// .sat: into [0, 1]; NaN becomes +0.
template <class T>
[[gnu::always_inline]] inline T saturate(T a) {
  return a > T(0) ? (a < T(1) ? a : T(1)) : T(0);
}

// Rounding to an integral value.
struct ToNearest {
  static f32 apply(f32 a) { return __builtin_rintf(a); }
  static f64 apply(f64 a) { return __builtin_rint(a); }
};
struct ToZero {
  static f32 apply(f32 a) { return __builtin_truncf(a); }
  static f64 apply(f64 a) { return __builtin_trunc(a); }
};
struct Down {
  static f32 apply(f32 a) { return __builtin_floorf(a); }
  static f64 apply(f64 a) { return __builtin_floor(a); }
};
struct Up {
  static f32 apply(f32 a) { return __builtin_ceilf(a); }
  static f64 apply(f64 a) { return __builtin_ceil(a); }
};

// F with subnormal sources and results flushed. A result counts as subnormal by what it would be with an exponent of
// any size: one that is rounded up to the least normal number only for want of bits is flushed too. F says what that
// result is, scaled by kScale, where it can matter.
constexpr f32 kScale = 0x1p100f;
template <class F>
struct Flushed {
  template <class... T>
  static f32 apply(T... sources) {
    f32 result = flush(F::apply(flush(sources)...));
    if constexpr (requires { F::scaled(sources...); }) {
      bool subnormal = __builtin_fabsf(F::scaled(flush(sources)...)) < 0x1p-126f * kScale;
      result = subnormal ? float_of(bits_of(result) & FloatBits<f32>::kSign) : result;
    }
    return result;
  }
};
template <class F>
struct Saturated {
  template <class... T>
  static auto apply(T... sources) {
    return saturate(F::apply(sources...));
  }
};

// A NaN loses against a number; -0 is less than +0. Equal numbers have the same bits but for the sign of zero.
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    T least = a == b ? float_of(bits_of(a) | bits_of(b)) : (a < b ? a : b);
    least = b != b ? a : least;
    return least != least ? float_of(FloatBits<T>::kNaN) : least;
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    T greatest = a == b ? float_of(bits_of(a) & bits_of(b)) : (a > b ? a : b);
    greatest = b != b ? a : greatest;
    return greatest != greatest ? float_of(FloatBits<T>::kNaN) : greatest;
  }
};
template <class F>
struct NanWins {  // min.NaN, max.NaN
  template <class T>
  static T apply(T a, T b) {
    return a != a || b != b ? float_of(FloatBits<T>::kNaN) : F::apply(a, b);
  }
};

template <class F>
struct SignsJoined {  // .xorsign.abs: of the magnitudes, with the product's sign
  template <class T>
  static T apply(T a, T b) {
    auto sign = (bits_of(a) ^ bits_of(b)) & FloatBits<T>::kSign;
    T chosen = F::apply(float_of(bits_of(a) & ~FloatBits<T>::kSign), float_of(bits_of(b) & ~FloatBits<T>::kSign));
    return chosen != chosen ? chosen : float_of(bits_of(chosen) | sign);
  }
};

// Runs a handler with the processor rounding in another direction. The handler is called through a pointer that the
// optimiser cannot see through, so that no arithmetic moves across the change.
inline constexpr unsigned kRoundDown = 0x2000, kRoundUp = 0x4000, kRoundToZero = 0x6000, kRoundingBits = 0x6000;
template <Handler kHandler, unsigned kDirection>
void rounded_handler(Warp& warp, const Op& op) {
  Handler volatile handler = kHandler;
  unsigned before = _mm_getcsr();
  _mm_setcsr((before & ~kRoundingBits) | kDirection);
  handler(warp, op);
  _mm_setcsr(before);
}

}  // namespace heddle::software::HEDDLE_LANES
