// Integer products: low and high halves, wide results, products with an addend, dot products of bytes.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

// The type with twice the bits, which holds any product.
template <class T>
struct Doubled;
template <>
struct Doubled<u16> {
  using type = u32;
};
template <>
struct Doubled<s16> {
  using type = s32;
};
template <>
struct Doubled<u32> {
  using type = u64;
};
template <>
struct Doubled<s32> {
  using type = s64;
};
template <>
struct Doubled<u64> {
  using type = unsigned __int128;
};
template <>
struct Doubled<s64> {
  using type = __int128;
};
template <class T>
using Wide = typename Doubled<T>::type;

template <class T>
Wide<T> product(T a, T b) {
  return static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}

struct MultiplyLow {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(product(a, b));
  }
  template <class T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(static_cast<T>(product(a, b)) + c);
  }
};
struct MultiplyHigh {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(product(a, b) >> (sizeof(T) * 8));
  }
  template <class T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(apply(a, b) + c);
  }
};
struct MultiplyAddHighSaturated {
  static s32 apply(s32 a, s32 b, s32 c) {
    s64 sum = (product(a, b) >> 32) + c;
    return static_cast<s32>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};
struct MultiplyWide {
  template <class T>
  static Wide<T> apply(T a, T b) {
    return product(a, b);
  }
  template <class T>
  static Wide<T> apply(T a, T b, Wide<T> c) {
    return static_cast<Wide<T>>(product(a, b) + c);
  }
};

// The low 24 bits, extended.
u32 low24(u32 a) {
  return a & 0xFFFFFF;
}
s32 low24(s32 a) {
  return static_cast<s32>(static_cast<u32>(a) << 8) >> 8;
}
struct Multiply24Low {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(product(low24(a), low24(b)));
  }
  template <class T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(apply(a, b) + c);
  }
};
struct Multiply24High {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(product(low24(a), low24(b)) >> 16);
  }
  template <class T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(apply(a, b) + c);
  }
};

struct MultiplyAdd24HighSaturated {
  static s32 apply(s32 a, s32 b, s32 c) {
    s64 sum = s64{Multiply24High::apply(a, b)} + c;
    return static_cast<s32>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
  }
};

// Byte or half `i` of a register, as the type says.
template <class T>
T part(u32 value, int i) {
  return static_cast<T>(value >> (i * static_cast<int>(sizeof(T)) * 8));
}

template <class A, class B>
struct Dot4 {
  static u32 apply(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 4; ++i) c += static_cast<u32>(s32{part<A>(a, i)} * s32{part<B>(b, i)});
    return c;
  }
};
template <class A, class B, int kFrom>
struct Dot2 {
  static u32 apply(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 2; ++i) c += static_cast<u32>(s32{part<A>(a, i)} * s32{part<B>(b, kFrom + i)});
    return c;
  }
};

constexpr Row kRows[] = {
    binary<MultiplyLow, u16>("mul.lo.u16"),
    binary<MultiplyLow, s16>("mul.lo.s16"),
    binary<MultiplyLow, u32>("mul.lo.u32"),
    binary<MultiplyLow, s32>("mul.lo.s32"),
    binary<MultiplyLow, u64>("mul.lo.u64"),
    binary<MultiplyLow, s64>("mul.lo.s64"),
    binary<MultiplyHigh, u16>("mul.hi.u16"),
    binary<MultiplyHigh, s16>("mul.hi.s16"),
    binary<MultiplyHigh, u32>("mul.hi.u32"),
    binary<MultiplyHigh, s32>("mul.hi.s32"),
    binary<MultiplyHigh, u64>("mul.hi.u64"),
    binary<MultiplyHigh, s64>("mul.hi.s64"),
    binary<MultiplyWide, u32, u16>("mul.wide.u16"),
    binary<MultiplyWide, s32, s16>("mul.wide.s16"),
    binary<MultiplyWide, u64, u32>("mul.wide.u32"),
    binary<MultiplyWide, s64, s32>("mul.wide.s32"),
    ternary<MultiplyLow, u16>("mad.lo.u16"),
    ternary<MultiplyLow, s16>("mad.lo.s16"),
    ternary<MultiplyLow, u32>("mad.lo.u32"),
    ternary<MultiplyLow, s32>("mad.lo.s32"),
    ternary<MultiplyLow, u64>("mad.lo.u64"),
    ternary<MultiplyLow, s64>("mad.lo.s64"),
    ternary<MultiplyHigh, u16>("mad.hi.u16"),
    ternary<MultiplyHigh, s16>("mad.hi.s16"),
    ternary<MultiplyHigh, u32>("mad.hi.u32"),
    ternary<MultiplyHigh, s32>("mad.hi.s32"),
    ternary<MultiplyHigh, u64>("mad.hi.u64"),
    ternary<MultiplyHigh, s64>("mad.hi.s64"),
    ternary<MultiplyAddHighSaturated, s32>("mad.hi.sat.s32"),
    ternary<MultiplyWide, u32, u16>("mad.wide.u16"),
    ternary<MultiplyWide, s32, s16>("mad.wide.s16"),
    ternary<MultiplyWide, u64, u32>("mad.wide.u32"),
    ternary<MultiplyWide, s64, s32>("mad.wide.s32"),
    binary<Multiply24Low, u32>("mul24.lo.u32"),
    binary<Multiply24Low, s32>("mul24.lo.s32"),
    binary<Multiply24High, u32>("mul24.hi.u32"),
    binary<Multiply24High, s32>("mul24.hi.s32"),
    ternary<Multiply24Low, u32>("mad24.lo.u32"),
    ternary<Multiply24Low, s32>("mad24.lo.s32"),
    ternary<Multiply24High, u32>("mad24.hi.u32"),
    ternary<Multiply24High, s32>("mad24.hi.s32"),
    ternary<MultiplyAdd24HighSaturated, s32>("mad24.hi.sat.s32"),
    ternary<Dot4<u8, u8>, u32>("dp4a.u32.u32"),
    ternary<Dot4<u8, s8>, u32>("dp4a.u32.s32"),
    ternary<Dot4<s8, u8>, u32>("dp4a.s32.u32"),
    ternary<Dot4<s8, s8>, u32>("dp4a.s32.s32"),
    ternary<Dot2<u16, u8, 0>, u32>("dp2a.lo.u32.u32"),
    ternary<Dot2<s16, u8, 0>, u32>("dp2a.lo.s32.u32"),
    ternary<Dot2<u16, s8, 0>, u32>("dp2a.lo.u32.s32"),
    ternary<Dot2<s16, s8, 0>, u32>("dp2a.lo.s32.s32"),
    ternary<Dot2<u16, u8, 2>, u32>("dp2a.hi.u32.u32"),
    ternary<Dot2<s16, u8, 2>, u32>("dp2a.hi.s32.u32"),
    ternary<Dot2<u16, s8, 2>, u32>("dp2a.hi.u32.s32"),
    ternary<Dot2<s16, s8, 2>, u32>("dp2a.hi.s32.s32"),
};

}  // namespace

std::span<const Row> multiply_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
