// cvt to an integer: from floats (rounded, then clamped into the type) and from integers (truncated or extended; with
// .sat clamped). A destination register wider than the type gets the value extended: rows named ".wide".

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/half.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

template <class T>
constexpr bool kIsSigned = T(-1) < T(0);
template <class T>
constexpr u32 kBits = sizeof(T) * 8;
template <class T>
constexpr T kHighest = static_cast<T>(kIsSigned<T> ? (u64{1} << (kBits<T> - 1)) - 1 : ~u64{0} >> (64 - kBits<T>));
template <class T>
constexpr T kLowest = static_cast<T>(kIsSigned<T> ? ~kHighest<T> : 0);

// NaN becomes 0, but the integer with only its highest bit set where 64 bits are involved.
template <class D, class A>
constexpr D kFromNan = static_cast<D>(sizeof(A) == 8 || sizeof(D) == 8 ? u64{1} << (kBits<D> - 1) : 0);

template <class D, class Rounding>
struct FromFloat {
  template <class A>
  static D apply(A a) {
    // 2 to the number of value bits: the first value too large, exact in any float.
    constexpr A kBeyond = A(u64{1} << (kBits<D> - kIsSigned<D> - 1)) * A(2);
    A rounded = Rounding::apply(a);
    bool low = !(rounded > (kIsSigned<D> ? -kBeyond : A(0))), high = rounded >= kBeyond;
    D inside = static_cast<D>(low || high ? A(0) : rounded);
    D clamped = high ? kHighest<D> : low ? kLowest<D> : inside;
    return a != a ? kFromNan<D, A> : clamped;
  }
};
template <class F>
struct SourceFlushed {
  static auto apply(f32 a) { return F::apply(flush(a)); }
};

template <class F>
struct FromHalf {
  template <class A>
  static auto apply(A a) {
    return F::apply(widen(a));
  }
};

template <class D>
struct Truncate {
  template <class A>
  static D apply(A a) {
    return static_cast<D>(a);
  }
};
template <class D>
struct Clamp {
  template <class A>
  static D apply(A a) {
    if (kIsSigned<A> && a < A(0)) {
      if (!kIsSigned<D>) return 0;
      return static_cast<s64>(a) < static_cast<s64>(kLowest<D>) ? kLowest<D> : static_cast<D>(a);
    }
    return static_cast<u64>(a) > static_cast<u64>(kHighest<D>) ? kHighest<D> : static_cast<D>(a);
  }
};

// F to D, then extended to the 64 bits of the register.
template <class F, class D>
struct Extended {
  using Register = std::conditional_t<kIsSigned<D>, s64, u64>;
  template <class A>
  static Register apply(A a) {
    return static_cast<Register>(F::apply(a));
  }
};
template <class D>
using Register64 = typename Extended<Truncate<D>, D>::Register;

#define FROM_FLOATS(D)                                                                                                \
  unary<FromFloat<D, ToNearest>, D, f32>("cvt.rni." #D ".f32"),                                                       \
      unary<FromFloat<D, ToZero>, D, f32>("cvt.rzi." #D ".f32"),                                                      \
      unary<FromFloat<D, Down>, D, f32>("cvt.rmi." #D ".f32"), unary<FromFloat<D, Up>, D, f32>("cvt.rpi." #D ".f32"), \
      unary<SourceFlushed<FromFloat<D, ToNearest>>, D, f32>("cvt.rni.ftz." #D ".f32"),                                \
      unary<SourceFlushed<FromFloat<D, ToZero>>, D, f32>("cvt.rzi.ftz." #D ".f32"),                                   \
      unary<SourceFlushed<FromFloat<D, Down>>, D, f32>("cvt.rmi.ftz." #D ".f32"),                                     \
      unary<SourceFlushed<FromFloat<D, Up>>, D, f32>("cvt.rpi.ftz." #D ".f32"),                                       \
      unary<FromFloat<D, ToNearest>, D, f64>("cvt.rni." #D ".f64"),                                                   \
      unary<FromFloat<D, ToZero>, D, f64>("cvt.rzi." #D ".f64"),                                                      \
      unary<FromFloat<D, Down>, D, f64>("cvt.rmi." #D ".f64"), unary<FromFloat<D, Up>, D, f64>("cvt.rpi." #D ".f64")

#define FROM_HALVES(D)                                                           \
  unary<FromHalf<FromFloat<D, ToNearest>>, D, Half>("cvt.rni." #D ".f16"),       \
      unary<FromHalf<FromFloat<D, ToZero>>, D, Half>("cvt.rzi." #D ".f16"),      \
      unary<FromHalf<FromFloat<D, Down>>, D, Half>("cvt.rmi." #D ".f16"),        \
      unary<FromHalf<FromFloat<D, Up>>, D, Half>("cvt.rpi." #D ".f16"),          \
      unary<FromHalf<FromFloat<D, ToNearest>>, D, Brain>("cvt.rni." #D ".bf16"), \
      unary<FromHalf<FromFloat<D, ToZero>>, D, Brain>("cvt.rzi." #D ".bf16"),    \
      unary<FromHalf<FromFloat<D, Down>>, D, Brain>("cvt.rmi." #D ".bf16"),      \
      unary<FromHalf<FromFloat<D, Up>>, D, Brain>("cvt.rpi." #D ".bf16")

#define FROM_INTEGER(D, A) unary<Truncate<D>, D, A>("cvt." #D "." #A), unary<Clamp<D>, D, A>("cvt.sat." #D "." #A)
#define FROM_INTEGERS(D)                                                                                      \
  FROM_INTEGER(D, u8), FROM_INTEGER(D, s8), FROM_INTEGER(D, u16), FROM_INTEGER(D, s16), FROM_INTEGER(D, u32), \
      FROM_INTEGER(D, s32), FROM_INTEGER(D, u64), FROM_INTEGER(D, s64)

#define WIDE_FROM_INTEGER(D, A)                                                \
  unary<Extended<Truncate<D>, D>, Register64<D>, A>("cvt." #D "." #A ".wide"), \
      unary<Extended<Clamp<D>, D>, Register64<D>, A>("cvt.sat." #D "." #A ".wide")
#define WIDE_FROM_INTEGERS(D)                                                                               \
  WIDE_FROM_INTEGER(D, u8), WIDE_FROM_INTEGER(D, s8), WIDE_FROM_INTEGER(D, u16), WIDE_FROM_INTEGER(D, s16), \
      WIDE_FROM_INTEGER(D, u32), WIDE_FROM_INTEGER(D, s32), WIDE_FROM_INTEGER(D, u64), WIDE_FROM_INTEGER(D, s64)

constexpr Row kRows[] = {
    FROM_FLOATS(u8),         FROM_FLOATS(s8),         FROM_FLOATS(u16),        FROM_FLOATS(s16),
    FROM_FLOATS(u32),        FROM_FLOATS(s32),        FROM_FLOATS(u64),        FROM_FLOATS(s64),
    FROM_HALVES(u8),         FROM_HALVES(s8),         FROM_HALVES(u16),        FROM_HALVES(s16),
    FROM_HALVES(u32),        FROM_HALVES(s32),        FROM_HALVES(u64),        FROM_HALVES(s64),
    FROM_INTEGERS(u8),       FROM_INTEGERS(s8),       FROM_INTEGERS(u16),      FROM_INTEGERS(s16),
    FROM_INTEGERS(u32),      FROM_INTEGERS(s32),      FROM_INTEGERS(u64),      FROM_INTEGERS(s64),
    WIDE_FROM_INTEGERS(u8),  WIDE_FROM_INTEGERS(s8),  WIDE_FROM_INTEGERS(u16), WIDE_FROM_INTEGERS(s16),
    WIDE_FROM_INTEGERS(u32), WIDE_FROM_INTEGERS(s32),
};

}  // namespace

std::span<const Row> convert_to_integer_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
