// Arithmetic on f16 and bf16, and on pairs of them.

#include "device/software/simt/lanes/half.h"

#include <math.h>

#include "device/software/simt/lanes/families.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Add {
  static f64 apply(f64 a, f64 b) { return fused_to_odd(a, 1.0, b); }
};
struct Subtract {
  static f64 apply(f64 a, f64 b) { return fused_to_odd(a, 1.0, -b); }
};
struct Multiply {
  static f64 apply(f64 a, f64 b) { return a * b; }
};
struct Fma {
  static f64 apply(f64 a, f64 b, f64 c) { return fused_to_odd(a, b, c); }
};

// The result of F on f64, rounded to nearest.
template <class F>
struct Rounded {
  template <class T, class... S>
  static T apply(T a, S... sources) {
    return nearest<T>(F::apply(static_cast<f64>(widen(a)), static_cast<f64>(widen(sources))...));
  }
  // Whether the result would be subnormal with an exponent of any size, as the device decides for .ftz.
  template <class... S>
  static bool is_subnormal(S... sources) {
    constexpr f64 kUp = 0x1p8, kLeast = 0x1p-14;
    return __builtin_fabs(static_cast<f64>(widen(nearest<Half>(F::apply(static_cast<f64>(widen(sources))...) * kUp)))) <
           kLeast * kUp;
  }
};
// .relu: what is negative becomes +0; NaN stays.
template <class F>
struct Relu {
  template <class... S>
  static f64 apply(S... sources) {
    f64 result = F::apply(sources...);
    return result <= 0 ? 0.0 : result;
  }
};
template <class F>
struct FlushedHalf {
  template <class... S>
  static Half apply(S... sources) {
    Half result = flush(F::apply(flush(sources)...));
    if constexpr (requires { F::is_subnormal(sources...); })
      result = F::is_subnormal(flush(sources)...) ? Half(result.bits & 0x8000u) : result;
    return result;
  }
};
// .oob: a source with all bits set marks a place beyond the end of a tensor; the result is 0 then.
template <class F>
struct OutOfBounds {
  template <class T>
  static T apply(T a, T b, T c) {
    bool outside = a.bits == 0xFFFF || b.bits == 0xFFFF || c.bits == 0xFFFF;
    return outside ? T(0u) : F::apply(a, b, c);
  }
};

// Functions of f32 whose result is one of the sources or close to exact.
template <class F>
struct Selected {
  template <class T, class... S>
  static T apply(T a, S... sources) {
    return nearest<T>(static_cast<f64>(F::apply(widen(a), widen(sources)...)));
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return T(a.bits ^ 0x8000u);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return T(a.bits & 0x7FFFu);
  }
};
struct Exp2 {
  static f32 apply(f32 a) { return exp2f(a); }
};
struct Tanh {
  static f32 apply(f32 a) { return tanhf(a); }
};
struct Exp2Flushed {
  static f32 apply(f32 a) { return flush(exp2f(flush(a))); }
};

// A functor on one value as a row for it and one for a pair.
#define UNARY(NAME, TYPE, T, ...) \
  unary<__VA_ARGS__, T>(NAME "." TYPE), unary<OnBoth<__VA_ARGS__, T>, u32>(NAME "." TYPE "x2")
#define BINARY(NAME, TYPE, T, ...) \
  binary<__VA_ARGS__, T>(NAME "." TYPE), binary<OnBoth<__VA_ARGS__, T>, u32>(NAME "." TYPE "x2")
#define TERNARY(NAME, TYPE, T, ...) \
  ternary<__VA_ARGS__, T>(NAME "." TYPE), ternary<OnBoth<__VA_ARGS__, T>, u32>(NAME "." TYPE "x2")

// What the modifiers make of an operation: .sat, .ftz, both; .NaN, .xorsign.abs, both; the latter with .ftz.
template <class F>
using InUnit = Rounded<Saturated<F>>;
template <class F>
using Ftz = FlushedHalf<Rounded<F>>;
template <class F>
using FtzInUnit = FlushedHalf<InUnit<F>>;
template <class F>
using Nan = Selected<NanWins<F>>;
template <class F>
using Signs = Selected<SignsJoined<F>>;
template <class F>
using NanSigns = Selected<SignsJoined<NanWins<F>>>;
template <class F>
using FtzSelected = FlushedHalf<Selected<F>>;
template <class F>
using FtzNan = FlushedHalf<Nan<F>>;
template <class F>
using FtzSigns = FlushedHalf<Signs<F>>;
template <class F>
using FtzNanSigns = FlushedHalf<NanSigns<F>>;

#define ARITHMETIC(NAME, F)                                                                         \
  BINARY(NAME, "f16", Half, Rounded<F>), BINARY(NAME ".sat", "f16", Half, InUnit<F>),               \
      BINARY(NAME ".ftz", "f16", Half, Ftz<F>), BINARY(NAME ".ftz.sat", "f16", Half, FtzInUnit<F>), \
      BINARY(NAME, "bf16", Brain, Rounded<F>)

#define EXTREMES(NAME, TYPE, T, F)                                          \
  BINARY(NAME, TYPE, T, Selected<F>), BINARY(NAME ".NaN", TYPE, T, Nan<F>), \
      BINARY(NAME ".xorsign.abs", TYPE, T, Signs<F>), BINARY(NAME ".NaN.xorsign.abs", TYPE, T, NanSigns<F>)
#define FLUSHED_EXTREMES(NAME, F)                                                                    \
  BINARY(NAME ".ftz", "f16", Half, FtzSelected<F>), BINARY(NAME ".ftz.NaN", "f16", Half, FtzNan<F>), \
      BINARY(NAME ".ftz.xorsign.abs", "f16", Half, FtzSigns<F>),                                     \
      BINARY(NAME ".ftz.NaN.xorsign.abs", "f16", Half, FtzNanSigns<F>)

constexpr Row kRows[] = {
    ARITHMETIC("add", Add),
    ARITHMETIC("sub", Subtract),
    ARITHMETIC("mul", Multiply),
    TERNARY("fma", "f16", Half, Rounded<Fma>),
    TERNARY("fma.sat", "f16", Half, Rounded<Saturated<Fma>>),
    TERNARY("fma.relu", "f16", Half, Rounded<Relu<Fma>>),
    TERNARY("fma.ftz", "f16", Half, FlushedHalf<Rounded<Fma>>),
    TERNARY("fma.ftz.sat", "f16", Half, FlushedHalf<Rounded<Saturated<Fma>>>),
    TERNARY("fma.ftz.relu", "f16", Half, FlushedHalf<Rounded<Relu<Fma>>>),
    TERNARY("fma.oob", "f16", Half, OutOfBounds<Rounded<Fma>>),
    TERNARY("fma.oob.relu", "f16", Half, OutOfBounds<Rounded<Relu<Fma>>>),
    TERNARY("fma", "bf16", Brain, Rounded<Fma>),
    TERNARY("fma.relu", "bf16", Brain, Rounded<Relu<Fma>>),
    TERNARY("fma.oob", "bf16", Brain, OutOfBounds<Rounded<Fma>>),
    TERNARY("fma.oob.relu", "bf16", Brain, OutOfBounds<Rounded<Relu<Fma>>>),
    UNARY("neg", "f16", Half, Negate),
    UNARY("neg.ftz", "f16", Half, FlushedHalf<Negate>),
    UNARY("neg", "bf16", Brain, Negate),
    UNARY("abs", "f16", Half, Absolute),
    UNARY("abs.ftz", "f16", Half, FlushedHalf<Absolute>),
    UNARY("abs", "bf16", Brain, Absolute),
    EXTREMES("min", "f16", Half, Minimum),
    EXTREMES("max", "f16", Half, Maximum),
    EXTREMES("min", "bf16", Brain, Minimum),
    EXTREMES("max", "bf16", Brain, Maximum),
    FLUSHED_EXTREMES("min", Minimum),
    FLUSHED_EXTREMES("max", Maximum),
    UNARY("ex2.approx", "f16", Half, Selected<Exp2>),
    UNARY("ex2.approx.ftz", "bf16", Brain, Selected<Exp2Flushed>),
    UNARY("tanh.approx", "f16", Half, Selected<Tanh>),
    UNARY("tanh.approx", "bf16", Brain, Selected<Tanh>),
};

}  // namespace

std::span<const Row> half_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
