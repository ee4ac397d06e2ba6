// Floating-point arithmetic that is exactly rounded or exact: IEEE 754 to nearest even, or in the direction that the
// instruction names.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/floating.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return a * b;
  }
  static f32 scaled(f32 a, f32 b) { return a * kScale * b; }
};
struct Fma {
  static f32 apply(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
  static f64 apply(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
};
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
  static f32 scaled(f32 a, f32 b) { return a * kScale / b; }
};
struct Reciprocal {
  template <class T>
  static T apply(T a) {
    return T(1) / a;
  }
};
struct SquareRoot {
  static f32 apply(f32 a) { return __builtin_sqrtf(a); }
  static f64 apply(f64 a) { return __builtin_sqrt(a); }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return float_of(bits_of(a) ^ FloatBits<T>::kSign);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return float_of(bits_of(a) & ~FloatBits<T>::kSign);
  }
};
struct CopySign {  // the sign of a, the magnitude of b
  template <class T>
  static T apply(T a, T b) {
    return float_of((bits_of(a) & FloatBits<T>::kSign) | (bits_of(b) & ~FloatBits<T>::kSign));
  }
};

// On the two floats of a 64-bit register (f32x2).
template <class F>
struct OnPair {
  template <class... S>
  static u64 apply(S... sources) {
    const u32 low = bits_of(F::apply(float_of(static_cast<u32>(sources))...));
    const u32 high = bits_of(F::apply(float_of(static_cast<u32>(sources >> 32))...));
    return static_cast<u64>(high) << 32 | low;
  }
};

template <unsigned kDirection, class F, class T>
constexpr Row rounded_binary(const char* name) {
  return {name, rounded_handler<binary_handler<F, T, T, T>, kDirection>, kWidth<T>, kWidth<T>, kWidth<T>};
}
template <unsigned kDirection, class F, class T>
constexpr Row rounded_unary(const char* name) {
  return {name, rounded_handler<unary_handler<F, T, T>, kDirection>, kWidth<T>, kWidth<T>};
}
template <unsigned kDirection, class F, class T>
constexpr Row rounded_ternary(const char* name) {
  return {name,     rounded_handler<ternary_handler<F, T, T, T, T>, kDirection>, kWidth<T>, kWidth<T>, kWidth<T>,
          kWidth<T>};
}

// .sat with the other roundings.
// NOLINTBEGIN(bugprone-macro-parentheses): names of templates cannot stand in any.
#define SATURATED_FORMS(ROW, NAME, F)                                                                               \
  ROW<kRoundToZero, Saturated<F>, f32>(NAME ".rz.sat.f32"), ROW<kRoundDown, Saturated<F>, f32>(NAME ".rm.sat.f32"), \
      ROW<kRoundUp, Saturated<F>, f32>(NAME ".rp.sat.f32"),                                                         \
      ROW<kRoundToZero, Saturated<Flushed<F>>, f32>(NAME ".rz.ftz.sat.f32"),                                        \
      ROW<kRoundDown, Saturated<Flushed<F>>, f32>(NAME ".rm.ftz.sat.f32"),                                          \
      ROW<kRoundUp, Saturated<Flushed<F>>, f32>(NAME ".rp.ftz.sat.f32")

// The forms of an operation on f32 and f64: to nearest even (no suffix in the name), .ftz, .sat, other roundings.
#define BINARY_FORMS(NAME, F)                                                                                   \
  binary<F, f32>(NAME ".f32"), binary<F, f64>(NAME ".f64"), binary<Flushed<F>, f32>(NAME ".ftz.f32"),           \
      binary<Saturated<F>, f32>(NAME ".sat.f32"), binary<Saturated<Flushed<F>>, f32>(NAME ".ftz.sat.f32"),      \
      rounded_binary<kRoundToZero, F, f32>(NAME ".rz.f32"), rounded_binary<kRoundDown, F, f32>(NAME ".rm.f32"), \
      rounded_binary<kRoundUp, F, f32>(NAME ".rp.f32"),                                                         \
      rounded_binary<kRoundToZero, Flushed<F>, f32>(NAME ".rz.ftz.f32"),                                        \
      rounded_binary<kRoundDown, Flushed<F>, f32>(NAME ".rm.ftz.f32"),                                          \
      rounded_binary<kRoundUp, Flushed<F>, f32>(NAME ".rp.ftz.f32"),                                            \
      rounded_binary<kRoundToZero, F, f64>(NAME ".rz.f64"), rounded_binary<kRoundDown, F, f64>(NAME ".rm.f64"), \
      rounded_binary<kRoundUp, F, f64>(NAME ".rp.f64")
#define UNARY_FORMS(NAME, F)                                                                                  \
  unary<F, f32>(NAME ".f32"), unary<F, f64>(NAME ".f64"), unary<Flushed<F>, f32>(NAME ".ftz.f32"),            \
      rounded_unary<kRoundToZero, F, f32>(NAME ".rz.f32"), rounded_unary<kRoundDown, F, f32>(NAME ".rm.f32"), \
      rounded_unary<kRoundUp, F, f32>(NAME ".rp.f32"),                                                        \
      rounded_unary<kRoundToZero, Flushed<F>, f32>(NAME ".rz.ftz.f32"),                                       \
      rounded_unary<kRoundDown, Flushed<F>, f32>(NAME ".rm.ftz.f32"),                                         \
      rounded_unary<kRoundUp, Flushed<F>, f32>(NAME ".rp.ftz.f32"),                                           \
      rounded_unary<kRoundToZero, F, f64>(NAME ".rz.f64"), rounded_unary<kRoundDown, F, f64>(NAME ".rm.f64"), \
      rounded_unary<kRoundUp, F, f64>(NAME ".rp.f64")
#define PAIR_FORMS(ROUNDED, NEAREST, NAME, F)                                                                         \
  NEAREST<OnPair<F>, u64>(NAME ".f32x2"), NEAREST<OnPair<Flushed<F>>, u64>(NAME ".ftz.f32x2"),                        \
      ROUNDED<kRoundToZero, OnPair<F>, u64>(NAME ".rz.f32x2"), ROUNDED<kRoundDown, OnPair<F>, u64>(NAME ".rm.f32x2"), \
      ROUNDED<kRoundUp, OnPair<F>, u64>(NAME ".rp.f32x2"),                                                            \
      ROUNDED<kRoundToZero, OnPair<Flushed<F>>, u64>(NAME ".rz.ftz.f32x2"),                                           \
      ROUNDED<kRoundDown, OnPair<Flushed<F>>, u64>(NAME ".rm.ftz.f32x2"),                                             \
      ROUNDED<kRoundUp, OnPair<Flushed<F>>, u64>(NAME ".rp.ftz.f32x2")
// NOLINTEND(bugprone-macro-parentheses)

constexpr Row kRows[] = {
    SATURATED_FORMS(rounded_binary, "add", Add),
    SATURATED_FORMS(rounded_binary, "sub", Subtract),
    SATURATED_FORMS(rounded_binary, "mul", Multiply),
    SATURATED_FORMS(rounded_ternary, "fma", Fma),
    PAIR_FORMS(rounded_binary, binary, "add", Add),
    PAIR_FORMS(rounded_binary, binary, "sub", Subtract),
    PAIR_FORMS(rounded_binary, binary, "mul", Multiply),
    PAIR_FORMS(rounded_ternary, ternary, "fma", Fma),
    BINARY_FORMS("add", Add),
    BINARY_FORMS("sub", Subtract),
    BINARY_FORMS("mul", Multiply),
    BINARY_FORMS("div", Divide),
    UNARY_FORMS("rcp", Reciprocal),
    UNARY_FORMS("sqrt", SquareRoot),
    ternary<Fma, f32>("fma.f32"),
    ternary<Fma, f64>("fma.f64"),
    ternary<Flushed<Fma>, f32>("fma.ftz.f32"),
    ternary<Saturated<Fma>, f32>("fma.sat.f32"),
    ternary<Saturated<Flushed<Fma>>, f32>("fma.ftz.sat.f32"),
    rounded_ternary<kRoundToZero, Fma, f32>("fma.rz.f32"),
    rounded_ternary<kRoundDown, Fma, f32>("fma.rm.f32"),
    rounded_ternary<kRoundUp, Fma, f32>("fma.rp.f32"),
    rounded_ternary<kRoundToZero, Flushed<Fma>, f32>("fma.rz.ftz.f32"),
    rounded_ternary<kRoundDown, Flushed<Fma>, f32>("fma.rm.ftz.f32"),
    rounded_ternary<kRoundUp, Flushed<Fma>, f32>("fma.rp.ftz.f32"),
    rounded_ternary<kRoundToZero, Fma, f64>("fma.rz.f64"),
    rounded_ternary<kRoundDown, Fma, f64>("fma.rm.f64"),
    rounded_ternary<kRoundUp, Fma, f64>("fma.rp.f64"),
    unary<Negate, f32>("neg.f32"),
    unary<Flushed<Negate>, f32>("neg.ftz.f32"),
    unary<Negate, f64>("neg.f64"),
    unary<Absolute, f32>("abs.f32"),
    unary<Flushed<Absolute>, f32>("abs.ftz.f32"),
    unary<Absolute, f64>("abs.f64"),
    binary<CopySign, f32>("copysign.f32"),
    binary<CopySign, f64>("copysign.f64"),
    binary<Minimum, f32>("min.f32"),
    binary<Flushed<Minimum>, f32>("min.ftz.f32"),
    binary<NanWins<Minimum>, f32>("min.NaN.f32"),
    binary<Flushed<NanWins<Minimum>>, f32>("min.ftz.NaN.f32"),
    binary<SignsJoined<Minimum>, f32>("min.xorsign.abs.f32"),
    binary<Flushed<SignsJoined<Minimum>>, f32>("min.ftz.xorsign.abs.f32"),
    binary<SignsJoined<NanWins<Minimum>>, f32>("min.NaN.xorsign.abs.f32"),
    binary<Flushed<SignsJoined<NanWins<Minimum>>>, f32>("min.ftz.NaN.xorsign.abs.f32"),
    binary<Minimum, f64>("min.f64"),
    binary<Maximum, f32>("max.f32"),
    binary<Flushed<Maximum>, f32>("max.ftz.f32"),
    binary<NanWins<Maximum>, f32>("max.NaN.f32"),
    binary<Flushed<NanWins<Maximum>>, f32>("max.ftz.NaN.f32"),
    binary<SignsJoined<Maximum>, f32>("max.xorsign.abs.f32"),
    binary<Flushed<SignsJoined<Maximum>>, f32>("max.ftz.xorsign.abs.f32"),
    binary<SignsJoined<NanWins<Maximum>>, f32>("max.NaN.xorsign.abs.f32"),
    binary<Flushed<SignsJoined<NanWins<Maximum>>>, f32>("max.ftz.NaN.xorsign.abs.f32"),
    binary<Maximum, f64>("max.f64"),
};

}  // namespace

std::span<const Row> float_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
