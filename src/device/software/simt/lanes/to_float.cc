// cvt to f32 and f64: from integers and between the two, rounded as named; and rounding a float to an integral value.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/floating.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

template <class D>
struct Convert {
  template <class A>
  static D apply(A a) {
    return static_cast<D>(a);
  }
};
template <class D>
struct FlushSource {
  static D apply(f32 a) { return static_cast<D>(flush(a)); }
};
struct FlushResult {
  static f32 apply(f64 a) { return flush(static_cast<f32>(a)); }
};

struct Same {
  template <class T>
  static T apply(T a) {
    return a;
  }
};

template <unsigned kDirection, class F, class D, class A>
constexpr Row rounded(const char* name) {
  return {name, rounded_handler<unary_handler<F, D, A>, kDirection>, kWidth<D>, kWidth<A>};
}

#define FROM_INTEGER(D, A)                                                                                    \
  unary<Convert<D>, D, A>("cvt.rn." #D "." #A), rounded<kRoundToZero, Convert<D>, D, A>("cvt.rz." #D "." #A), \
      rounded<kRoundDown, Convert<D>, D, A>("cvt.rm." #D "." #A),                                             \
      rounded<kRoundUp, Convert<D>, D, A>("cvt.rp." #D "." #A)
#define FROM_INTEGERS(D)                                                                                      \
  FROM_INTEGER(D, u8), FROM_INTEGER(D, s8), FROM_INTEGER(D, u16), FROM_INTEGER(D, s16), FROM_INTEGER(D, u32), \
      FROM_INTEGER(D, s32), FROM_INTEGER(D, u64), FROM_INTEGER(D, s64)

constexpr Row kRows[] = {
    FROM_INTEGERS(f32),
    FROM_INTEGERS(f64),
    unary<Convert<f64>, f64, f32>("cvt.f64.f32"),
    unary<FlushSource<f64>, f64, f32>("cvt.ftz.f64.f32"),
    unary<Convert<f32>, f32, f64>("cvt.rn.f32.f64"),
    unary<FlushResult, f32, f64>("cvt.rn.ftz.f32.f64"),
    unary<Saturated<Convert<f32>>, f32, f64>("cvt.rn.sat.f32.f64"),
    rounded<kRoundToZero, FlushResult, f32, f64>("cvt.rz.ftz.f32.f64"),
    rounded<kRoundDown, FlushResult, f32, f64>("cvt.rm.ftz.f32.f64"),
    rounded<kRoundUp, FlushResult, f32, f64>("cvt.rp.ftz.f32.f64"),
    rounded<kRoundToZero, Saturated<Convert<f32>>, f32, f64>("cvt.rz.sat.f32.f64"),
    rounded<kRoundDown, Saturated<Convert<f32>>, f32, f64>("cvt.rm.sat.f32.f64"),
    rounded<kRoundUp, Saturated<Convert<f32>>, f32, f64>("cvt.rp.sat.f32.f64"),
    unary<Saturated<Convert<f64>>, f64, f32>("cvt.sat.f64.f32"),
    unary<Saturated<FlushSource<f64>>, f64, f32>("cvt.ftz.sat.f64.f32"),
    unary<Saturated<Same>, f64>("cvt.sat.f64.f64"),
    unary<Same, f64>("cvt.f64.f64"),
    rounded<kRoundToZero, Convert<f32>, f32, f64>("cvt.rz.f32.f64"),
    rounded<kRoundDown, Convert<f32>, f32, f64>("cvt.rm.f32.f64"),
    rounded<kRoundUp, Convert<f32>, f32, f64>("cvt.rp.f32.f64"),
    unary<Same, f32>("cvt.f32.f32"),
    unary<Flushed<Same>, f32>("cvt.ftz.f32.f32"),
    unary<Saturated<Same>, f32>("cvt.sat.f32.f32"),
    unary<Saturated<Flushed<Same>>, f32>("cvt.ftz.sat.f32.f32"),
    unary<ToNearest, f32>("cvt.rni.f32.f32"),
    unary<ToZero, f32>("cvt.rzi.f32.f32"),
    unary<Down, f32>("cvt.rmi.f32.f32"),
    unary<Up, f32>("cvt.rpi.f32.f32"),
    unary<Saturated<ToNearest>, f32>("cvt.rni.sat.f32.f32"),
    unary<Saturated<ToZero>, f32>("cvt.rzi.sat.f32.f32"),
    unary<Saturated<Down>, f32>("cvt.rmi.sat.f32.f32"),
    unary<Saturated<Up>, f32>("cvt.rpi.sat.f32.f32"),
    unary<Flushed<ToNearest>, f32>("cvt.rni.ftz.f32.f32"),
    unary<Flushed<ToZero>, f32>("cvt.rzi.ftz.f32.f32"),
    unary<Flushed<Down>, f32>("cvt.rmi.ftz.f32.f32"),
    unary<Flushed<Up>, f32>("cvt.rpi.ftz.f32.f32"),
    unary<ToNearest, f64>("cvt.rni.f64.f64"),
    unary<ToZero, f64>("cvt.rzi.f64.f64"),
    unary<Down, f64>("cvt.rmi.f64.f64"),
    unary<Up, f64>("cvt.rpi.f64.f64"),
};

}  // namespace

std::span<const Row> convert_to_float_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
