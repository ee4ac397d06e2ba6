// Integer arithmetic without products. Everything wraps, as on the device; -fwrapv makes that defined.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

template <class T>
constexpr bool kIsSigned = T(-1) < T(0);
template <class T>
constexpr T kLowest = kIsSigned<T> ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);

struct Add {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a - b);
  }
};
s32 clamp_to_s32(s64 value) {
  return static_cast<s32>(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}
struct AddSaturated {
  static s32 apply(s32 a, s32 b) { return clamp_to_s32(s64{a} + b); }
};
struct SubtractSaturated {
  static s32 apply(s32 a, s32 b) { return clamp_to_s32(s64{a} - b); }
};
// Division by zero does not trap: quotient and remainder have all bits set.
struct Divide {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (kIsSigned<T> && b == static_cast<T>(-1)) return static_cast<T>(-a);
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (kIsSigned<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Negate {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(-a);
  }
};
struct Absolute {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(a < 0 ? -a : a);
  }
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
// .relu: what is negative becomes 0.
template <class F>
struct Relu {
  static s32 apply(s32 a, s32 b) { return Maximum::apply(F::apply(a, b), 0); }
  static s16 apply(s16 a, s16 b) { return Maximum::apply(F::apply(a, b), s16{0}); }
};
// F on both halves of packed values.
template <class F, class T>
struct OnBoth {
  static u32 apply(u32 a, u32 b) {
    auto low = static_cast<u16>(F::apply(static_cast<T>(a), static_cast<T>(b)));
    auto high = static_cast<u16>(F::apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return u32{high} << 16 | low;
  }
};
struct AbsoluteDifference {  // sad: c + |a - b|
  template <class T, class C>
  static C apply(T a, T b, C c) {
    return static_cast<C>(c + static_cast<C>(a < b ? b - a : a - b));
  }
};

constexpr Row kRows[] = {
    binary<Add, u16>("add.u16"),
    binary<Add, s16>("add.s16"),
    binary<Add, u32>("add.u32"),
    binary<Add, s32>("add.s32"),
    binary<Add, u64>("add.u64"),
    binary<Add, s64>("add.s64"),
    binary<AddSaturated, s32>("add.sat.s32"),
    binary<Subtract, u16>("sub.u16"),
    binary<Subtract, s16>("sub.s16"),
    binary<Subtract, u32>("sub.u32"),
    binary<Subtract, s32>("sub.s32"),
    binary<Subtract, u64>("sub.u64"),
    binary<Subtract, s64>("sub.s64"),
    binary<SubtractSaturated, s32>("sub.sat.s32"),
    binary<Divide, u16>("div.u16"),
    binary<Divide, s16>("div.s16"),
    binary<Divide, u32>("div.u32"),
    binary<Divide, s32>("div.s32"),
    binary<Divide, u64>("div.u64"),
    binary<Divide, s64>("div.s64"),
    binary<Remainder, u16>("rem.u16"),
    binary<Remainder, s16>("rem.s16"),
    binary<Remainder, u32>("rem.u32"),
    binary<Remainder, s32>("rem.s32"),
    binary<Remainder, u64>("rem.u64"),
    binary<Remainder, s64>("rem.s64"),
    unary<Negate, s16>("neg.s16"),
    unary<Negate, s32>("neg.s32"),
    unary<Negate, s64>("neg.s64"),
    unary<Absolute, s16>("abs.s16"),
    unary<Absolute, s32>("abs.s32"),
    unary<Absolute, s64>("abs.s64"),
    binary<Minimum, u16>("min.u16"),
    binary<Minimum, s16>("min.s16"),
    binary<Minimum, u32>("min.u32"),
    binary<Minimum, s32>("min.s32"),
    binary<Minimum, u64>("min.u64"),
    binary<Minimum, s64>("min.s64"),
    binary<Maximum, u16>("max.u16"),
    binary<Maximum, s16>("max.s16"),
    binary<Maximum, u32>("max.u32"),
    binary<Maximum, s32>("max.s32"),
    binary<Maximum, u64>("max.u64"),
    binary<Maximum, s64>("max.s64"),
    binary<OnBoth<Add, u16>, u32>("add.u16x2"),
    binary<OnBoth<Add, s16>, u32>("add.s16x2"),
    binary<OnBoth<Minimum, u16>, u32>("min.u16x2"),
    binary<OnBoth<Minimum, s16>, u32>("min.s16x2"),
    binary<OnBoth<Maximum, u16>, u32>("max.u16x2"),
    binary<OnBoth<Maximum, s16>, u32>("max.s16x2"),
    binary<OnBoth<Relu<Minimum>, s16>, u32>("min.relu.s16x2"),
    binary<OnBoth<Relu<Maximum>, s16>, u32>("max.relu.s16x2"),
    binary<Relu<Minimum>, s32>("min.relu.s32"),
    binary<Relu<Maximum>, s32>("max.relu.s32"),
    ternary<AbsoluteDifference, u16>("sad.u16"),
    ternary<AbsoluteDifference, u16, s16, s16, u16>("sad.s16"),
    ternary<AbsoluteDifference, u32>("sad.u32"),
    ternary<AbsoluteDifference, u32, s32, s32, u32>("sad.s32"),
    ternary<AbsoluteDifference, u64>("sad.u64"),
    ternary<AbsoluteDifference, u64, s64, s64, u64>("sad.s64"),
};

}  // namespace

std::span<const Row> integer_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
