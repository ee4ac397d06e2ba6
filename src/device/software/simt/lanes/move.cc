// mov, selp, slct, and the moves that the compiler of kernels adds: of special registers, parameters and halves.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/floating.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Copy {
  template <class T>
  static T apply(T a) {
    return a;
  }
};
struct Pack32 {
  static u32 apply(u16 low, u16 high) { return u32{high} << 16 | low; }
};
struct Pack64 {
  static u64 apply(u32 low, u32 high) { return u64{high} << 32 | low; }
};
struct LowHalf {
  static u16 apply(u32 a) { return static_cast<u16>(a); }
  static u32 apply(u64 a) { return static_cast<u32>(a); }
};
struct HighHalf {
  static u16 apply(u32 a) { return static_cast<u16>(a >> 16); }
  static u32 apply(u64 a) { return static_cast<u32>(a >> 32); }
};

template <class T>
void select_by_predicate(Warp& warp, const Op& op) {
  const Slot<T>* a = lanes_of<T>(warp, op.a);
  const Slot<T>* b = lanes_of<T>(warp, op.b);
  u32 c = predicate(warp, op.c);
  write_lanes<T>(warp, op.d, [=](u32 lane) {
    T x = read<T>(a, lane), y = read<T>(b, lane);
    return c >> lane & 1 ? x : y;
  });
}
template <class T>
constexpr Row select(const char* name) {
  return {name, select_by_predicate<T>, kWidth<T>, kWidth<T>, kWidth<T>, Width::kPredicate};
}

struct SelectBySign {  // slct
  template <class T, class C>
  static T apply(T a, T b, C c) {
    return c >= C(0) ? a : b;
  }
};
struct SelectBySignFlushed {
  template <class T>
  static T apply(T a, T b, f32 c) {
    return flush(c) >= 0.0f ? a : b;
  }
};
template <class F, class T, class C>
constexpr Row by_sign(const char* name) {
  return ternary<F, T, T, T, C>(name);
}

void copy_predicate(Warp& warp, const Op& op) {
  write_predicate(warp, op.d, predicate(warp, op.a));
}
// A value of -1 (f32: 1.0) where the predicate holds, else 0: the value of set.
void predicate_to_u32(Warp& warp, const Op& op) {
  u32 a = predicate(warp, op.a);
  auto value = static_cast<u32>(op.imm);
  write_lanes<u32>(warp, op.d, [=](u32 lane) { return a >> lane & 1 ? value : 0; });
}
// imm in all lanes.
template <class T>
void fill(Warp& warp, const Op& op) {
  auto value = static_cast<T>(op.imm);
  write_lanes<T>(warp, op.d, [=](u32) { return value; });
}

#define BY_SIGN_ROWS(NAME, T)                                                                             \
  by_sign<SelectBySign, T, s32>("slct." NAME ".s32"), by_sign<SelectBySign, T, f32>("slct." NAME ".f32"), \
      by_sign<SelectBySignFlushed, T, f32>("slct.ftz." NAME ".f32")

constexpr Row kRows[] = {
    unary<Copy, u16>("mov.16"),
    unary<Copy, u32>("mov.32"),
    unary<Copy, u64>("mov.64"),
    {"mov.pred", copy_predicate, Width::kPredicate, Width::kPredicate},
    binary<Pack32, u32, u16>("mov.pack.32"),
    binary<Pack64, u64, u32>("mov.pack.64"),
    unary<LowHalf, u16, u32>("mov.low.32"),
    unary<HighHalf, u16, u32>("mov.high.32"),
    unary<LowHalf, u32, u64>("mov.low.64"),
    unary<HighHalf, u32, u64>("mov.high.64"),
    {"predicate.to.u32", predicate_to_u32, Width::k32, Width::kPredicate},
    {"fill.32", fill<u32>, Width::k32},
    {"fill.64", fill<u64>, Width::k64},
    select<u16>("selp.b16"),
    select<u16>("selp.u16"),
    select<u16>("selp.s16"),
    select<u32>("selp.b32"),
    select<u32>("selp.u32"),
    select<u32>("selp.s32"),
    select<u64>("selp.b64"),
    select<u64>("selp.u64"),
    select<u64>("selp.s64"),
    select<u32>("selp.f32"),
    select<u64>("selp.f64"),
    BY_SIGN_ROWS("b16", u16),
    BY_SIGN_ROWS("u16", u16),
    BY_SIGN_ROWS("s16", u16),
    BY_SIGN_ROWS("b32", u32),
    BY_SIGN_ROWS("u32", u32),
    BY_SIGN_ROWS("s32", u32),
    BY_SIGN_ROWS("b64", u64),
    BY_SIGN_ROWS("u64", u64),
    BY_SIGN_ROWS("s64", u64),
    BY_SIGN_ROWS("f32", f32),
    BY_SIGN_ROWS("f64", f64),
};

}  // namespace

std::span<const Row> move_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
