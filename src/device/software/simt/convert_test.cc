// cvt between all kinds of numbers, against the host in wider types.

#include <cmath>

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

template <class T>
std::string type_name() {
  return PtxType<T>::kMemory;
}

template <class D, class A>
void expect_cvt(const std::string& modifiers, D (*reference)(A)) {
  expect_instruction<D, A>("cvt" + modifiers + "." + type_name<D>() + "." + type_name<A>() + " %d, %a;", singles<A>(),
                           reference);
}

// Rounded by `round`, clamped; NaN as PTX has it.
template <class D, class A, A (*kRound)(A)>
D to_integer(A a) {
  if (a != a) return static_cast<D>(sizeof(A) == 8 || sizeof(D) == 8 ? 1ull << (sizeof(D) * 8 - 1) : 0);
  long double rounded = kRound(a);
  if (rounded <= static_cast<long double>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  if (rounded >= static_cast<long double>(std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
  return static_cast<D>(rounded);
}

template <class D>
class ToInteger : public ::testing::Test {};
using IntegerTypes = ::testing::Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(ToInteger, IntegerTypes);

TYPED_TEST(ToInteger, FromFloatsRoundsAndClamps) {
  using D = TypeParam;
  expect_cvt<D, float>(".rzi", to_integer<D, float, std::trunc>);
  expect_cvt<D, float>(".rni", to_integer<D, float, std::rint>);
  expect_cvt<D, float>(".rmi", to_integer<D, float, std::floor>);
  expect_cvt<D, float>(".rpi", to_integer<D, float, std::ceil>);
  expect_cvt<D, float>(".rzi.ftz.sat", to_integer<D, float, std::trunc>);
  expect_cvt<D, double>(".rzi", to_integer<D, double, std::trunc>);
  expect_cvt<D, double>(".rni", to_integer<D, double, std::rint>);
  expect_cvt<D, double>(".rmi", to_integer<D, double, std::floor>);
}

template <class D, class A>
D truncated(A a) {
  return static_cast<D>(a);
}
template <class D, class A>
D clamped(A a) {
  return static_cast<D>(std::clamp<__int128>(a, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
}

TYPED_TEST(ToInteger, FromIntegersTruncatesOrExtendsOrClamps) {
  using D = TypeParam;
  auto expect_from = []<class A>(A) {
    expect_cvt<D, A>("", truncated<D, A>);
    expect_cvt<D, A>(".sat", clamped<D, A>);
  };
  expect_from(uint8_t{}), expect_from(int8_t{}), expect_from(uint16_t{}), expect_from(int16_t{});
  expect_from(uint32_t{}), expect_from(int32_t{}), expect_from(uint64_t{}), expect_from(int64_t{});
}

template <class A>
class FromInteger : public ::testing::Test {};
TYPED_TEST_SUITE(FromInteger, IntegerTypes);

TYPED_TEST(FromInteger, ToFloatsRoundsToNearest) {
  using A = TypeParam;
  expect_cvt<float, A>(".rn", [](A a) { return static_cast<float>(a); });
  expect_cvt<double, A>(".rn", [](A a) { return static_cast<double>(a); });
}

TYPED_TEST(FromInteger, ToFloatsRoundsInOtherDirections) {
  using A = TypeParam;
  // The nearest float, moved by one step where it lies on the wrong side.
  expect_cvt<float, A>(".rz", [](A a) {
    float nearest = static_cast<float>(a);
    bool too_far = std::fabs(static_cast<long double>(nearest)) > std::fabs(static_cast<long double>(a));
    return too_far ? std::nextafter(nearest, 0.0f) : nearest;
  });
  expect_cvt<float, A>(".rm", [](A a) {
    float nearest = static_cast<float>(a);
    return static_cast<long double>(nearest) > static_cast<long double>(a) ? std::nextafter(nearest, -INFINITY)
                                                                           : nearest;
  });
  expect_cvt<float, A>(".rp", [](A a) {
    float nearest = static_cast<float>(a);
    return static_cast<long double>(nearest) < static_cast<long double>(a) ? std::nextafter(nearest, INFINITY)
                                                                           : nearest;
  });
}

TEST(BetweenFloats, WidensExactlyAndNarrowsRounded) {
  expect_cvt<double, float>("", [](float a) { return static_cast<double>(a); });
  expect_cvt<float, double>(".rn", [](double a) { return static_cast<float>(a); });
  expect_cvt<float, double>(".rz", [](double a) {
    float nearest = static_cast<float>(a);
    return std::fabs(nearest) > std::fabs(a) && a == a && !std::isinf(a) ? std::nextafter(nearest, 0.0f) : nearest;
  });
  expect_cvt<float, float>(".sat", [](float a) { return a > 0 ? std::min(a, 1.0f) : 0.0f; });
}

TEST(BetweenFloats, RoundsToIntegralValues) {
  expect_cvt<float, float>(".rni", std::rint);
  expect_cvt<float, float>(".rzi", std::trunc);
  expect_cvt<float, float>(".rmi", std::floor);
  expect_cvt<float, float>(".rpi", std::ceil);
  expect_cvt<double, double>(".rni", std::rint);
  expect_cvt<double, double>(".rzi", std::trunc);
  expect_cvt<double, double>(".rmi", std::floor);
  expect_cvt<double, double>(".rpi", std::ceil);
}

TEST(RegistersWiderThanTheType, AreExtendedAndReadInTheirLowPart) {
  expect_instruction<int64_t, int32_t>("cvt.s16.s32 %at, %a; mov.b64 %d, %at;", singles<int32_t>(),
                                       [](int32_t a) { return int64_t{static_cast<int16_t>(a)}; });
  expect_instruction<uint64_t, uint32_t>("cvt.u8.u32 %at, %a; mov.b64 %d, %at;", singles<uint32_t>(),
                                         [](uint32_t a) { return uint64_t{static_cast<uint8_t>(a)}; });
  expect_instruction<int32_t, int64_t>("cvt.s32.s8 %d, %a;", singles<int64_t>(),
                                       [](int64_t a) { return int32_t{static_cast<int8_t>(a)}; });
  expect_instruction<float, int64_t>("cvt.rn.f32.s32 %d, %a;", singles<int64_t>(),
                                     [](int64_t a) { return static_cast<float>(static_cast<int32_t>(a)); });
}

TEST(Packing, JoinsAndSplitsRegisters) {
  using U = uint32_t;
  expect_instruction<uint64_t, U, U>("mov.b64 %d, {%a, %b};", pairs<U, U>(),
                                     [](U a, U b) { return uint64_t{b} << 32 | a; });
  expect_instruction<U, uint64_t>("mov.b64 {%j, %d}, %a;", singles<uint64_t>(),
                                  [](uint64_t a) { return static_cast<U>(a >> 32); });
  expect_instruction<U, uint64_t>("mov.b64 {%d, _}, %a;", singles<uint64_t>(),
                                  [](uint64_t a) { return static_cast<U>(a); });
  expect_instruction<U, uint16_t, uint16_t>("mov.b32 %d, {%a, %b};", pairs<uint16_t, uint16_t>(),
                                            [](U a, U b) { return b << 16 | a; });
  expect_instruction<U, U>(
      "mov.b32 {%x, %y}, %a; mov.b32 %d, {%y, %x};", singles<U>(), [](U a) { return a << 16 | a >> 16; },
      ".reg .b16 %x, %y;\n");
  expect_instruction<uint64_t, uint64_t>(
      "mov.b64 {%x, %y, %z, %w}, %a; mov.b64 %d, {%w, %z, %y, %x};", singles<uint64_t>(),
      [](uint64_t a) { return a << 48 | (a & 0xFFFF0000) << 16 | (a >> 16 & 0xFFFF0000) | a >> 48; },
      ".reg .b16 %x, %y, %z, %w;\n");
}

}  // namespace
}  // namespace heddle::software::testing
