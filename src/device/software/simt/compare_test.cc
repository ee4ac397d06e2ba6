// Comparisons, ordered and unordered, and what is selected by them.

#include <functional>

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

template <class T>
void expect_setp(const std::string& comparison, bool (*reference)(T, T)) {
  expect_instruction<uint32_t, T, T>(
      "setp." + comparison + "." + PtxType<T>::kMemory + " %p, %a, %b; selp.u32 %d, 1, 0, %p;", pairs<T, T>(),
      [=](T a, T b) { return reference(a, b) ? 1u : 0u; });
}

template <class T>
class Comparison : public ::testing::Test {};
using Types = ::testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float, double>;
TYPED_TEST_SUITE(Comparison, Types);

TYPED_TEST(Comparison, OrderedOnesAreFalseForNan) {
  using T = TypeParam;
  expect_setp<T>("eq", [](T a, T b) { return a == b; });
  expect_setp<T>("ne", [](T a, T b) { return a != b && a == a && b == b; });
  expect_setp<T>("lt", [](T a, T b) { return a < b; });
  expect_setp<T>("le", [](T a, T b) { return a <= b; });
  expect_setp<T>("gt", [](T a, T b) { return a > b; });
  expect_setp<T>("ge", [](T a, T b) { return a >= b; });
}

template <class T>
class Unordered : public ::testing::Test {};
using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Unordered, FloatTypes);

TYPED_TEST(Unordered, OnesAreTrueForNan) {
  using T = TypeParam;
  static constexpr auto nan = [](T a, T b) { return a != a || b != b; };
  expect_setp<T>("equ", [](T a, T b) { return nan(a, b) || a == b; });
  expect_setp<T>("neu", [](T a, T b) { return a != b; });
  expect_setp<T>("ltu", [](T a, T b) { return nan(a, b) || a < b; });
  expect_setp<T>("leu", [](T a, T b) { return nan(a, b) || a <= b; });
  expect_setp<T>("gtu", [](T a, T b) { return nan(a, b) || a > b; });
  expect_setp<T>("geu", [](T a, T b) { return nan(a, b) || a >= b; });
  expect_setp<T>("num", [](T a, T b) { return !nan(a, b); });
  expect_setp<T>("nan", [](T a, T b) { return nan(a, b); });
}

TEST(ComparisonForms, UnsignedNames) {
  using U = uint32_t;
  expect_setp<U>("lo", [](U a, U b) { return a < b; });
  expect_setp<U>("ls", [](U a, U b) { return a <= b; });
  expect_setp<U>("hi", [](U a, U b) { return a > b; });
  expect_setp<U>("hs", [](U a, U b) { return a >= b; });
}

TEST(ComparisonForms, CombinedWithAPredicateAndItsOpposite) {
  using S = int32_t;
  std::string p = "setp.gt.s32 %q, %a, 5; ";
  expect_instruction<uint32_t, S, S>(
      p + "setp.lt.and.s32 %p|%q, %a, %b, !%q; selp.u32 %d, 2, 0, %p; @%q add.u32 %d, %d, 1;", pairs<S, S>(),
      [](S a, S b) { return (a < b && a <= 5 ? 2u : 0u) + (a >= b && a <= 5 ? 1u : 0u); });
  expect_instruction<uint32_t, S, S>(p + "setp.lt.or.s32 %p, %a, %b, %q; selp.u32 %d, 1, 0, %p;", pairs<S, S>(),
                                     [](S a, S b) { return a < b || a > 5 ? 1u : 0u; });
  expect_instruction<uint32_t, S, S>(p + "setp.lt.xor.s32 %p|_, %a, %b, %q; selp.u32 %d, 1, 0, %p;", pairs<S, S>(),
                                     [](S a, S b) { return (a < b) != (a > 5) ? 1u : 0u; });
}

TEST(ComparisonForms, FlushedSubnormalsAreEqual) {
  std::vector<std::tuple<float, float>> inputs = {{1e-40f, 0.0f}, {1e-40f, 2e-40f}, {1.0f, 1e-40f}};
  expect_instruction<uint32_t, float, float>("setp.eq.ftz.f32 %p, %a, %b; selp.u32 %d, 1, 0, %p;", inputs,
                                             [](float a, float) { return a < 1 ? 1u : 0u; });
}

TEST(ComparisonForms, SetGivesAllOnesOrOne) {
  using F = float;
  expect_instruction<uint32_t, F, F>("set.lt.u32.f32 %d, %a, %b;", pairs<F, F>(),
                                     [](F a, F b) { return a < b ? ~0u : 0u; });
  expect_instruction<F, int32_t, int32_t>("set.ge.f32.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
                                          [](int32_t a, int32_t b) { return a >= b ? 1.0f : 0.0f; });
}

TEST(Selection, ByPredicateAndBySign) {
  expect_instruction<double, double, double>("setp.lt.f64 %p, %a, %b; selp.f64 %d, %a, %b, %p;",
                                             pairs<double, double>(), [](double a, double b) { return a < b ? a : b; });
  expect_instruction<uint16_t, uint16_t, uint16_t>("setp.lt.u16 %p, %a, %b; selp.b16 %d, %a, %b, %p;",
                                                   pairs<uint16_t, uint16_t>(),
                                                   [](uint16_t a, uint16_t b) { return a < b ? a : b; });
  expect_instruction<uint32_t, uint32_t, uint32_t, int32_t>(
      "slct.u32.s32 %d, %a, %b, %c;", triples<uint32_t, uint32_t, int32_t>(),
      [](uint32_t a, uint32_t b, int32_t c) { return c >= 0 ? a : b; });
  expect_instruction<uint32_t, uint32_t, uint32_t, float>(
      "slct.u32.f32 %d, %a, %b, %c;", triples<uint32_t, uint32_t, float>(),
      [](uint32_t a, uint32_t b, float c) { return c >= 0 ? a : b; });
}

}  // namespace
}  // namespace heddle::software::testing
