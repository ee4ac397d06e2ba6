// Floating-point functions that the device approximates. They are computed by the host's mathematical library: closer
// to the true value than the device's own, not equal to it in the last bits.

#include <math.h>

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/floating.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Divide {
  static f32 apply(f32 a, f32 b) { return a / b; }
};
// div.approx multiplies by a reciprocal that is flushed: for divisors from 2^126 on it is 0 (and infinity times 0 NaN).
struct DivideByReciprocal {
  static f32 apply(f32 a, f32 b) {
    f32 magnitude = float_of(bits_of(b) & FloatBits<f32>::kNaN);
    bool large = magnitude > 0x1p126f && magnitude < __builtin_inff();
    return large ? a * float_of(bits_of(b) & FloatBits<f32>::kSign) : a / b;
  }
};
struct Reciprocal {
  static f32 apply(f32 a) { return 1.0f / a; }
};
struct SquareRoot {
  static f32 apply(f32 a) { return __builtin_sqrtf(a); }
};
struct ReciprocalRoot {
  static f32 apply(f32 a) { return static_cast<f32>(1.0 / __builtin_sqrt(static_cast<f64>(a))); }
  static f64 apply(f64 a) { return 1.0 / __builtin_sqrt(a); }
};
struct Exp2 {
  static f32 apply(f32 a) { return exp2f(a); }
};
struct Log2 {
  static f32 apply(f32 a) { return log2f(a); }
};
// The device turns the angle into revolutions first, an f32 product rounded to zero: large angles lose what is behind
// the point there, and so they must here.
f64 reduced_angle(f32 a) {
  constexpr f64 kPerRevolution = 0x1.45f306p-3, kRevolution = 6.283185307179586477;  // the former as an f32
  f64 exact = static_cast<f64>(a) * kPerRevolution;                                  // 48 bits
  f32 turns = static_cast<f32>(exact);
  bool beyond = turns < 0 ? static_cast<f64>(turns) < exact : static_cast<f64>(turns) > exact;
  turns = beyond && turns != 0 && turns - turns == 0 ? float_of(bits_of(turns) - 1) : turns;
  f64 part = static_cast<f64>(turns) - __builtin_rint(static_cast<f64>(turns));
  return __builtin_copysign(part, part == 0 ? static_cast<f64>(a) : part) * kRevolution;
}
struct Sine {
  static f32 apply(f32 a) { return static_cast<f32>(sin(reduced_angle(a))); }
};
struct Cosine {
  static f32 apply(f32 a) { return static_cast<f32>(cos(reduced_angle(a))); }
};
struct Tanh {
  static f32 apply(f32 a) { return tanhf(a); }
};

// The device computes these from the upper 32 bits of an f64 and leaves the lower 32 zero.
constexpr u64 kUpperHalf = 0xFFFFFFFF00000000ull;
f64 upper_half(f64 a) {
  bool subnormal = (bits_of(a) & FloatBits<f64>::kExponent) == 0;
  return float_of(bits_of(a) & (subnormal ? FloatBits<f64>::kSign : kUpperHalf));
}
struct ReciprocalGross {
  static f64 apply(f64 a) { return upper_half(1.0 / upper_half(a)); }
};
struct ReciprocalRootGross {
  static f64 apply(f64 a) { return upper_half(1.0 / __builtin_sqrt(upper_half(a))); }
};

constexpr Row kRows[] = {
    binary<Divide, f32>("div.full.f32"),
    binary<Flushed<Divide>, f32>("div.full.ftz.f32"),
    binary<DivideByReciprocal, f32>("div.approx.f32"),
    binary<Flushed<DivideByReciprocal>, f32>("div.approx.ftz.f32"),
    unary<Reciprocal, f32>("rcp.approx.f32"),
    unary<Flushed<Reciprocal>, f32>("rcp.approx.ftz.f32"),
    unary<ReciprocalGross, f64>("rcp.approx.ftz.f64"),
    unary<SquareRoot, f32>("sqrt.approx.f32"),
    unary<Flushed<SquareRoot>, f32>("sqrt.approx.ftz.f32"),
    unary<ReciprocalRoot, f32>("rsqrt.approx.f32"),
    unary<Flushed<ReciprocalRoot>, f32>("rsqrt.approx.ftz.f32"),
    unary<ReciprocalRoot, f64>("rsqrt.approx.f64"),
    unary<ReciprocalRootGross, f64>("rsqrt.approx.ftz.f64"),
    unary<Exp2, f32>("ex2.approx.f32"),
    unary<Flushed<Exp2>, f32>("ex2.approx.ftz.f32"),
    unary<Log2, f32>("lg2.approx.f32"),
    unary<Flushed<Log2>, f32>("lg2.approx.ftz.f32"),
    unary<Sine, f32>("sin.approx.f32"),
    unary<Flushed<Sine>, f32>("sin.approx.ftz.f32"),
    unary<Cosine, f32>("cos.approx.f32"),
    unary<Flushed<Cosine>, f32>("cos.approx.ftz.f32"),
    unary<Tanh, f32>("tanh.approx.f32"),
};

}  // namespace

std::span<const Row> float_function_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
