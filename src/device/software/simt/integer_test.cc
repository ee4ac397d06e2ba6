// Integer instructions against the host, in types wide enough that nothing overflows there.

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

using Wide = __int128;

template <class T>
std::string type_name() {
  return PtxType<T>::kMemory;
}

template <class T, class F>
void expect_binary(const std::string& opcode, F reference) {
  expect_instruction<T, T, T>(opcode + "." + type_name<T>() + " %d, %a, %b;", pairs<T, T>(),
                              [=](T a, T b) { return static_cast<T>(reference(Wide{a}, Wide{b})); });
}

template <class T>
class Integer : public ::testing::Test {};
using Types = ::testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(Integer, Types);

TYPED_TEST(Integer, SumsAndDifferencesWrap) {
  expect_binary<TypeParam>("add", [](Wide a, Wide b) { return a + b; });
  expect_binary<TypeParam>("sub", [](Wide a, Wide b) { return a - b; });
}

TYPED_TEST(Integer, MinimumAndMaximum) {
  expect_binary<TypeParam>("min", [](Wide a, Wide b) { return std::min(a, b); });
  expect_binary<TypeParam>("max", [](Wide a, Wide b) { return std::max(a, b); });
}

TYPED_TEST(Integer, DivisionByZeroAndOfTheLowestNumberByMinusOne) {
  expect_binary<TypeParam>("div", [](Wide a, Wide b) { return b == 0 ? Wide{-1} : a / b; });
  expect_binary<TypeParam>("rem", [](Wide a, Wide b) { return b == 0 ? Wide{-1} : a % b; });
}

TYPED_TEST(Integer, Products) {
  using T = TypeParam;
  constexpr int kBits = sizeof(T) * 8;
  auto product = [](T a, T b) {
    return std::is_signed_v<T> ? static_cast<unsigned __int128>(Wide{a} * Wide{b})
                               : static_cast<unsigned __int128>(a) * b;
  };
  expect_instruction<T, T, T>("mul.lo." + type_name<T>() + " %d, %a, %b;", pairs<T, T>(),
                              [=](T a, T b) { return static_cast<T>(product(a, b)); });
  expect_instruction<T, T, T>("mul.hi." + type_name<T>() + " %d, %a, %b;", pairs<T, T>(),
                              [=](T a, T b) { return static_cast<T>(product(a, b) >> kBits); });
  expect_instruction<T, T, T, T>(
      "mad.lo." + type_name<T>() + " %d, %a, %b, %c;", triples<T, T, T>(),
      [=](T a, T b, T c) { return static_cast<T>(product(a, b) + static_cast<unsigned __int128>(c)); });
  expect_instruction<T, T, T, T>(
      "mad.hi." + type_name<T>() + " %d, %a, %b, %c;", triples<T, T, T>(),
      [=](T a, T b, T c) { return static_cast<T>(static_cast<T>(product(a, b) >> kBits) + Wide{c}); });
}

TYPED_TEST(Integer, SumOfAbsoluteDifferences) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  expect_instruction<U, T, T, U>("sad." + type_name<T>() + " %d, %a, %b, %c;", triples<T, T, U>(), [](T a, T b, U c) {
    return static_cast<U>(c + static_cast<U>(a < b ? Wide{b} - a : Wide{a} - b));
  });
}

template <class T>
class Signed : public ::testing::Test {};
using SignedTypes = ::testing::Types<int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(Signed, SignedTypes);

TYPED_TEST(Signed, NegativeAndAbsoluteValues) {
  using T = TypeParam;
  expect_instruction<T, T>("neg." + type_name<T>() + " %d, %a;", singles<T>(),
                           [](T a) { return static_cast<T>(-Wide{a}); });
  expect_instruction<T, T>("abs." + type_name<T>() + " %d, %a;", singles<T>(),
                           [](T a) { return static_cast<T>(a < 0 ? -Wide{a} : Wide{a}); });
}

TEST(IntegerForms, SaturatingSums) {
  auto clamp = [](int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); };
  expect_instruction<int32_t, int32_t, int32_t>("add.sat.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
                                                [=](int64_t a, int64_t b) { return clamp(a + b); });
  expect_instruction<int32_t, int32_t, int32_t>("sub.sat.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
                                                [=](int64_t a, int64_t b) { return clamp(a - b); });
}

TEST(IntegerForms, WideProducts) {
  expect_instruction<int64_t, int32_t, int32_t>("mul.wide.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
                                                [](int64_t a, int64_t b) { return a * b; });
  expect_instruction<uint64_t, uint32_t, uint32_t>("mul.wide.u32 %d, %a, %b;", pairs<uint32_t, uint32_t>(),
                                                   [](uint64_t a, uint64_t b) { return a * b; });
  expect_instruction<int32_t, int16_t, int16_t>("mul.wide.s16 %d, %a, %b;", pairs<int16_t, int16_t>(),
                                                [](int32_t a, int32_t b) { return a * b; });
  expect_instruction<int64_t, int32_t, int32_t, int64_t>(
      "mad.wide.s32 %d, %a, %b, %c;", triples<int32_t, int32_t, int64_t>(),
      [](int64_t a, int64_t b, int64_t c) { return static_cast<int64_t>(Wide{a} * b + c); });
}

TEST(IntegerForms, ProductsOf24Bits) {
  auto low = [](int32_t a) { return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(a) << 8) >> 8); };
  expect_instruction<int32_t, int32_t, int32_t>(
      "mul24.lo.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
      [=](int32_t a, int32_t b) { return static_cast<int32_t>(low(a) * low(b)); });
  expect_instruction<int32_t, int32_t, int32_t>(
      "mul24.hi.s32 %d, %a, %b;", pairs<int32_t, int32_t>(),
      [=](int32_t a, int32_t b) { return static_cast<int32_t>(low(a) * low(b) >> 16); });
}

TEST(IntegerForms, DotProductsOfBytes) {
  expect_instruction<int32_t, int32_t, int32_t, int32_t>(
      "dp4a.s32.s32 %d, %a, %b, %c;", triples<int32_t, int32_t, int32_t>(), [](int32_t a, int32_t b, int32_t c) {
        auto sum = static_cast<uint32_t>(c);
        for (int i = 0; i < 4; ++i)
          sum += static_cast<uint32_t>(static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i)));
        return static_cast<int32_t>(sum);
      });
}

TEST(IntegerForms, CarriesChainInto128Bits) {
  // The high half of (b:a) + (c:a), which needs the carry of the low halves.
  expect_instruction<uint64_t, uint64_t, uint64_t, uint64_t>(
      "add.cc.u64 %by, %a, %a; addc.u64 %d, %b, %c;", triples<uint64_t, uint64_t, uint64_t>(),
      [](uint64_t a, uint64_t b, uint64_t c) { return b + c + (a >> 63); });
  expect_instruction<uint32_t, uint32_t, uint32_t, uint32_t>(
      "sub.cc.u32 %j, %a, %b; subc.u32 %d, %c, 0;", triples<uint32_t, uint32_t, uint32_t>(),
      [](uint32_t a, uint32_t b, uint32_t c) { return c - (a < b ? 1 : 0); });
  expect_instruction<uint32_t, uint32_t, uint32_t, uint32_t>(
      "mad.lo.cc.u32 %j, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", triples<uint32_t, uint32_t, uint32_t>(),
      [](uint64_t a, uint64_t b, uint64_t c) { return static_cast<uint32_t>((a * b + c) >> 32); });
  expect_instruction<uint64_t, uint64_t, uint64_t, uint64_t>(
      "mad.lo.cc.u64 %by, %a, %b, %c; madc.hi.u64 %d, %a, %b, 0;", triples<uint64_t, uint64_t, uint64_t>(),
      [](uint64_t a, uint64_t b, uint64_t c) {
        return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b + c) >> 64);
      });
}

}  // namespace
}  // namespace heddle::software::testing
