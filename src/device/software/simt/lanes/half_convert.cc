// cvt to f16, bf16, tf32 and the 8-bit floats, one or two values at a time, and from them to floats. Those from them to
// integers stand with the other conversions to integers.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/half.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

// An f64 that rounds to the same 16-bit float: exact, or with its last bit set for all that does not fit in.
f64 to_odd(u64 magnitude, bool negative) {
  constexpr u64 kBeyond = (u64{1} << 11) - 1;
  bool large = magnitude >> 53;
  u64 kept = large ? (magnitude & ~kBeyond) | (magnitude & kBeyond ? kBeyond + 1 : 0) : magnitude;
  f64 value = static_cast<f64>(kept);
  return negative ? -value : value;
}
f64 exact(f32 a) {
  return static_cast<f64>(a);
}
f64 exact(f64 a) {
  return a;
}
f64 exact(Half a) {
  return static_cast<f64>(widen(a));
}
f64 exact(Brain a) {
  return static_cast<f64>(widen(a));
}
template <class I>
f64 exact(I a) {
  if constexpr (sizeof(I) < 8) {
    return static_cast<f64>(a);
  } else {
    bool negative = a < I(0);
    auto bits = static_cast<u64>(a);
    return to_odd(negative ? u64{0} - bits : bits, negative);
  }
}

template <class D, Rounding kRounding>
struct Encode {
  template <class A>
  static D apply(A a) {
    return D(encode<D, kRounding>(exact(a)));
  }
};
template <class D, Rounding kRounding>
struct EncodeSaturated {
  template <class A>
  static D apply(A a) {
    return D(encode<D, kRounding>(saturate(exact(a))));
  }
};
template <class D, Rounding kRounding>
struct EncodeRelu {
  static D apply(f32 a) { return Encode<D, kRounding>::apply(a <= 0.0f ? 0.0f : a); }
};
// d = {a, b}: the first source is the upper half.
template <class F>
struct Pair {
  static u32 apply(f32 a, f32 b) { return static_cast<u32>(F::apply(a)) << 16 | static_cast<u32>(F::apply(b)); }
};
template <Rounding kRounding>
struct ToTensor {
  static u32 apply(f32 a) { return encode<Tensor, kRounding>(exact(a)) << 13; }
};
template <Rounding kRounding>
struct ToTensorRelu {
  static u32 apply(f32 a) { return ToTensor<kRounding>::apply(a <= 0.0f ? 0.0f : a); }
};

struct Widen {
  template <class A>
  static f32 apply(A a) {
    return widen(a);
  }
};
struct WidenTwice {
  template <class A>
  static f64 apply(A a) {
    return static_cast<f64>(widen(a));
  }
};
template <class F>
struct Integral {
  template <class A>
  static A apply(A a) {
    return nearest<A>(exact(F::apply(widen(a))));
  }
};

// e4m3 has no infinity and one NaN, all ones; e5m2 is the upper byte of an f16.
struct E4M3 {
  static constexpr int kExponent = 4, kFraction = 3;
};
struct E5M2 {
  static constexpr int kExponent = 5, kFraction = 2;
};
struct E5M3 {  // one exponent bit more than e4m3, so that 256 to 448 are numbers like others
  static constexpr int kExponent = 5, kFraction = 3;
};
// .satfinite: what is too large becomes the largest finite number.
u32 to_byte(f64 a, E4M3) {
  u32 sign = bits_of(a) >> 63 ? 0x80 : 0;
  f64 magnitude = float_of(bits_of(a) & FloatBits<f64>::kNaN);
  if (magnitude != magnitude) return 0x7F;
  if (magnitude >= 448) return sign | 0x7E;
  // Scaled so that the smallest normal exponents, -6 and -14, agree.
  return sign | encode<E5M3, Rounding::kNearest>(magnitude * 0x1p-8);
}
u32 to_byte(f64 a, E5M2) {
  u32 sign = bits_of(a) >> 63 ? 0x80 : 0;
  f64 magnitude = float_of(bits_of(a) & FloatBits<f64>::kNaN);
  if (magnitude != magnitude) return 0x7F;
  if (magnitude >= 57344) return sign | 0x7B;
  return sign | encode<E5M2, Rounding::kNearest>(magnitude);
}
f64 relu(f64 a) {
  return a <= 0 ? 0 : a;
}
template <class Format, bool kRelu>
struct ToBytes {
  static u16 join(f64 high, f64 low) {
    if (kRelu) high = relu(high), low = relu(low);
    return static_cast<u16>(to_byte(high, Format()) << 8 | to_byte(low, Format()));
  }
  static u16 apply(f32 a, f32 b) { return join(exact(a), exact(b)); }
  static u16 apply(u32 pair) { return join(exact(Half(pair >> 16)), exact(Half(pair))); }
};
u32 half_of_byte(u32 byte, E5M2) {
  bool nan = (byte & 0x7F) > 0x7C;
  return nan ? 0x7FFF : byte << 8;
}
u32 half_of_byte(u32 byte, E4M3) {
  u32 sign = (byte & 0x80) << 8, magnitude = byte & 0x7F;
  if (magnitude == 0x7F) return 0x7FFF;
  // As an f16 the same bits are 2^-8 of the value, exactly.
  return sign | static_cast<u32>(nearest<Half>(exact(Half(magnitude << 7)) * 256));
}
template <class Format, bool kRelu>
struct FromBytes {
  static u32 one(u32 byte) {
    u32 half = half_of_byte(byte, Format());
    return kRelu && (half & 0x8000) ? 0 : half;
  }
  static u32 apply(u16 bytes) { return one(bytes >> 8) << 16 | one(bytes & 255u); }
};

#define ROUNDINGS(D, NAME, A, SOURCE)                                     \
  unary<Encode<D, Rounding::kNearest>, D, A>("cvt.rn." NAME "." SOURCE),  \
      unary<Encode<D, Rounding::kZero>, D, A>("cvt.rz." NAME "." SOURCE), \
      unary<Encode<D, Rounding::kDown>, D, A>("cvt.rm." NAME "." SOURCE), \
      unary<Encode<D, Rounding::kUp>, D, A>("cvt.rp." NAME "." SOURCE)
#define INTEGER_ROUNDINGS(D, NAME, A) ROUNDINGS(D, NAME, A, #A)
#define FROM_ALL(D, NAME)                                                                                \
  INTEGER_ROUNDINGS(D, NAME, u8), INTEGER_ROUNDINGS(D, NAME, s8), INTEGER_ROUNDINGS(D, NAME, u16),       \
      INTEGER_ROUNDINGS(D, NAME, s16), INTEGER_ROUNDINGS(D, NAME, u32), INTEGER_ROUNDINGS(D, NAME, s32), \
      INTEGER_ROUNDINGS(D, NAME, u64), INTEGER_ROUNDINGS(D, NAME, s64), INTEGER_ROUNDINGS(D, NAME, f32), \
      INTEGER_ROUNDINGS(D, NAME, f64)
#define FLOAT_FORMS(NAME, R)                                                                    \
  unary<Encode<Half, R>, Half, f32>("cvt." NAME ".ftz.f16.f32"), /* .ftz: no effect on a GPU */ \
      unary<EncodeSaturated<Half, R>, Half, f32>("cvt." NAME ".sat.f16.f32"),                   \
      unary<EncodeSaturated<Half, R>, Half, f64>("cvt." NAME ".sat.f16.f64")
// Of two values at a time.
template <class D, Rounding kRounding>
using Both = Pair<Encode<D, kRounding>>;
template <class D, Rounding kRounding>
using BothRelu = Pair<EncodeRelu<D, kRounding>>;
#define PAIR_FORMS(NAME, R)                                                  \
  unary<EncodeRelu<Half, R>, Half, f32>("cvt." NAME ".relu.f16.f32"),        \
      unary<EncodeRelu<Brain, R>, Brain, f32>("cvt." NAME ".relu.bf16.f32"), \
      binary<Both<Half, R>, u32, f32>("cvt." NAME ".f16x2.f32"),             \
      binary<Both<Brain, R>, u32, f32>("cvt." NAME ".bf16x2.f32"),           \
      binary<BothRelu<Half, R>, u32, f32>("cvt." NAME ".relu.f16x2.f32"),    \
      binary<BothRelu<Brain, R>, u32, f32>("cvt." NAME ".relu.bf16x2.f32"),  \
      unary<ToTensor<R>, u32, f32>("cvt." NAME ".tf32.f32"),                 \
      unary<ToTensorRelu<R>, u32, f32>("cvt." NAME ".relu.tf32.f32")
#define INTEGRAL_FORMS(NAME, F) \
  unary<Integral<F>, Half>("cvt." NAME ".f16.f16"), unary<Integral<F>, Brain>("cvt." NAME ".bf16.bf16")
#define BYTE_FORMS(NAME, F)                                                      \
  binary<ToBytes<F, false>, u16, f32>("cvt.rn.satfinite." NAME ".f32"),          \
      binary<ToBytes<F, true>, u16, f32>("cvt.rn.satfinite.relu." NAME ".f32"),  \
      unary<ToBytes<F, false>, u16, u32>("cvt.rn.satfinite." NAME ".f16x2"),     \
      unary<ToBytes<F, true>, u16, u32>("cvt.rn.satfinite.relu." NAME ".f16x2"), \
      unary<FromBytes<F, false>, u32, u16>("cvt.rn.f16x2." NAME),                \
      unary<FromBytes<F, true>, u32, u16>("cvt.rn.relu.f16x2." NAME)

constexpr Row kRows[] = {
    FROM_ALL(Half, "f16"),
    FROM_ALL(Brain, "bf16"),
    ROUNDINGS(Half, "f16", Brain, "bf16"),
    ROUNDINGS(Brain, "bf16", Half, "f16"),
    FLOAT_FORMS("rn", Rounding::kNearest),
    FLOAT_FORMS("rz", Rounding::kZero),
    FLOAT_FORMS("rm", Rounding::kDown),
    FLOAT_FORMS("rp", Rounding::kUp),
    PAIR_FORMS("rn", Rounding::kNearest),
    PAIR_FORMS("rz", Rounding::kZero),
    unary<ToTensor<Rounding::kNearestAway>, u32, f32>("cvt.rna.tf32.f32"),
    unary<Widen, f32, Half>("cvt.f32.f16"),
    unary<Widen, f32, Brain>("cvt.f32.bf16"),
    unary<WidenTwice, f64, Half>("cvt.f64.f16"),
    unary<WidenTwice, f64, Brain>("cvt.f64.bf16"),
    unary<Widen, f32, Half>("cvt.ftz.f32.f16"),  // .ftz has no effect on a GPU either
    unary<Saturated<Widen>, f32, Half>("cvt.sat.f32.f16"),
    unary<Saturated<Widen>, f32, Half>("cvt.ftz.sat.f32.f16"),
    unary<EncodeSaturated<Half, Rounding::kNearest>, Half>("cvt.sat.f16.f16"),
    INTEGRAL_FORMS("rni", ToNearest),
    INTEGRAL_FORMS("rzi", ToZero),
    INTEGRAL_FORMS("rmi", Down),
    INTEGRAL_FORMS("rpi", Up),
    BYTE_FORMS("e4m3x2", E4M3),
    BYTE_FORMS("e5m2x2", E5M2),
};

}  // namespace

std::span<const Row> half_conversion_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
