// setp, set and testp: comparisons to predicates and to values. The floating comparisons come in an ordered kind, false
// if an operand is NaN, and an unordered kind (equ, neu, ltu, ...), true then.

#include "device/software/simt/control.h"
#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/half.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a < b || a > b;
  }  // ordered
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};
// The unordered kind of a comparison is the negation of the opposite one.
template <class F>
struct Negated {
  template <class T>
  static bool apply(T a, T b) {
    return !F::apply(a, b);
  }
};
struct BothNumbers {
  template <class T>
  static bool apply(T a, T b) {
    return a == a && b == b;
  }
};
template <class F>
struct Flush {
  static bool apply(f32 a, f32 b) { return F::apply(flush(a), flush(b)); }
};

u32 combine(const Warp& warp, const Op& op, u32 mask) {
  u32 operation = op.flags & kCombineMask;
  if (!operation) return mask;
  u32 c = predicate(warp, op.c);
  if (op.flags & kNegateC) c = ~c;
  return operation == kCombineAnd ? mask & c : operation == kCombineOr ? mask | c : mask ^ c;
}

// setp d|q, a, b [, c]: d = (a ? b) op c, q = !(a ? b) op c.
template <class F, class T>
void set_predicate(Warp& warp, const Op& op) {
  const Slot<T>* a = lanes_of<T>(warp, op.a);
  const Slot<T>* b = lanes_of<T>(warp, op.b);
  u32 holds = mask_of([=](u32 lane) { return F::apply(read<T>(a, lane), read<T>(b, lane)); });
  u32 opposite = combine(warp, op, ~holds);
  holds = combine(warp, op, holds);
  if (op.d != Op::kNone) write_predicate(warp, op.d, holds);
  if (op.target != Op::kNone) write_predicate(warp, op.target, opposite);
  if (op.flags & kThenBranch) branch_behind(warp, op);
}

// Comparisons of 16-bit floats are those of the f32 that they are.
template <class F>
struct Widened {
  template <class T>
  static bool apply(T a, T b) {
    return F::apply(widen(a), widen(b));
  }
};
template <class F>
struct WidenedFlushed {
  static bool apply(Half a, Half b) { return F::apply(widen(flush(a)), widen(flush(b))); }
};

// setp d|q on pairs: d for the lower halves, q for the upper ones.
template <class F, class T>
void set_pair_of_predicates(Warp& warp, const Op& op) {
  const u32* a = lanes_of<u32>(warp, op.a);
  const u32* b = lanes_of<u32>(warp, op.b);
  u32 low = mask_of([=](u32 lane) { return F::apply(T(a[lane]), T(b[lane])); });
  u32 high = mask_of([=](u32 lane) { return F::apply(T(a[lane] >> 16), T(b[lane] >> 16)); });
  low = combine(warp, op, low), high = combine(warp, op, high);
  if (op.d != Op::kNone) write_predicate(warp, op.d, low);
  if (op.target != Op::kNone) write_predicate(warp, op.target, high);
}
template <class F, class T>
constexpr Row compare_pairs(const char* name) {
  return {name, set_pair_of_predicates<F, T>, Width::kPredicate, Width::k32, Width::k32};
}

template <class F, class T>
constexpr Row compare(const char* name) {
  return {name, set_predicate<F, T>, Width::kPredicate, kWidth<T>, kWidth<T>};
}

enum class Class { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <Class kClass, class T>
void test_predicate(Warp& warp, const Op& op) {
  const T* a = lanes_of<T>(warp, op.a);
  constexpr auto kExponent = FloatBits<T>::kExponent;
  u32 holds = mask_of([=](u32 lane) {
    auto magnitude = bits_of(a[lane]) & ~FloatBits<T>::kSign;
    auto exponent = magnitude & kExponent;
    switch (kClass) {
      case Class::kFinite:
        return exponent != kExponent;
      case Class::kInfinite:
        return magnitude == kExponent;
      case Class::kNumber:
        return magnitude <= kExponent;
      case Class::kNotANumber:
        return magnitude > kExponent;
      case Class::kNormal:
        return exponent != kExponent && (exponent != 0 || magnitude == 0);  // PTX counts zero in
      case Class::kSubnormal:
        return exponent == 0 && magnitude != 0;
    }
    return false;
  });
  write_predicate(warp, op.d, holds);
}
template <Class kClass, class T>
constexpr Row test(const char* name) {
  return {name, test_predicate<kClass, T>, Width::kPredicate, kWidth<T>};
}

#define EQUALITY_ROWS(T) compare<Equal, T>("setp.eq." #T), compare<Negated<Equal>, T>("setp.ne." #T)
#define BITS_ROWS(NAME, T) compare<Equal, T>("setp.eq." NAME), compare<Negated<Equal>, T>("setp.ne." NAME)
#define ORDER_ROWS(T)                                                                                          \
  compare<Less, T>("setp.lt." #T), compare<LessOrEqual, T>("setp.le." #T), compare<Greater, T>("setp.gt." #T), \
      compare<GreaterOrEqual, T>("setp.ge." #T)
#define UNSIGNED_ROWS(T)                                                                                       \
  compare<Less, T>("setp.lo." #T), compare<LessOrEqual, T>("setp.ls." #T), compare<Greater, T>("setp.hi." #T), \
      compare<GreaterOrEqual, T>("setp.hs." #T)
#define FLOAT_ROWS(NAME, T, WRAP) COMPARISON_ROWS(compare, NAME, T, WRAP)
#define PAIR_ROWS(NAME, T, WRAP) COMPARISON_ROWS(compare_pairs, NAME, T, WRAP)
// NOLINTBEGIN(bugprone-macro-parentheses): names of templates cannot stand in any.
#define COMPARISON_ROWS(ROW, NAME, T, WRAP)                                                                           \
  ROW<WRAP<Equal>, T>("setp.eq." NAME), ROW<WRAP<NotEqual>, T>("setp.ne." NAME), ROW<WRAP<Less>, T>("setp.lt." NAME), \
      ROW<WRAP<LessOrEqual>, T>("setp.le." NAME), ROW<WRAP<Greater>, T>("setp.gt." NAME),                             \
      ROW<WRAP<GreaterOrEqual>, T>("setp.ge." NAME), ROW<WRAP<Negated<NotEqual>>, T>("setp.equ." NAME),               \
      ROW<WRAP<Negated<Equal>>, T>("setp.neu." NAME), ROW<WRAP<Negated<GreaterOrEqual>>, T>("setp.ltu." NAME),        \
      ROW<WRAP<Negated<Greater>>, T>("setp.leu." NAME), ROW<WRAP<Negated<LessOrEqual>>, T>("setp.gtu." NAME),         \
      ROW<WRAP<Negated<Less>>, T>("setp.geu." NAME), ROW<WRAP<BothNumbers>, T>("setp.num." NAME),                     \
      ROW<WRAP<Negated<BothNumbers>>, T>("setp.nan." NAME)
// NOLINTEND(bugprone-macro-parentheses)
#define TEST_ROWS(T)                                                                                    \
  test<Class::kFinite, T>("testp.finite." #T), test<Class::kInfinite, T>("testp.infinite." #T),         \
      test<Class::kNumber, T>("testp.number." #T), test<Class::kNotANumber, T>("testp.notanumber." #T), \
      test<Class::kNormal, T>("testp.normal." #T), test<Class::kSubnormal, T>("testp.subnormal." #T)

template <class F>
using Plain = F;

constexpr Row kRows[] = {
    BITS_ROWS("b16", u16),
    BITS_ROWS("b32", u32),
    BITS_ROWS("b64", u64),
    EQUALITY_ROWS(u16),
    EQUALITY_ROWS(u32),
    EQUALITY_ROWS(u64),
    EQUALITY_ROWS(s16),
    EQUALITY_ROWS(s32),
    EQUALITY_ROWS(s64),
    ORDER_ROWS(u16),
    ORDER_ROWS(u32),
    ORDER_ROWS(u64),
    ORDER_ROWS(s16),
    ORDER_ROWS(s32),
    ORDER_ROWS(s64),
    UNSIGNED_ROWS(u16),
    UNSIGNED_ROWS(u32),
    UNSIGNED_ROWS(u64),
    FLOAT_ROWS("f32", f32, Plain),
    FLOAT_ROWS("ftz.f32", f32, Flush),
    FLOAT_ROWS("f64", f64, Plain),
    FLOAT_ROWS("f16", Half, Widened),
    FLOAT_ROWS("ftz.f16", Half, WidenedFlushed),
    FLOAT_ROWS("bf16", Brain, Widened),
    PAIR_ROWS("f16x2", Half, Widened),
    PAIR_ROWS("ftz.f16x2", Half, WidenedFlushed),
    PAIR_ROWS("bf16x2", Brain, Widened),
    TEST_ROWS(f32),
    TEST_ROWS(f64),
};

}  // namespace

std::span<const Row> compare_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
