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
struct Sine {
  static f32 apply(f32 a) { return sinf(a); }
};
struct Cosine {
  static f32 apply(f32 a) { return cosf(a); }
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
    binary<Divide, f32>("div.approx.f32"),
    binary<Flushed<Divide>, f32>("div.approx.ftz.f32"),
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
