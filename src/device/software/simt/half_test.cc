// 16-bit floats against the host. What a GPU makes of every form stands in tests/numerics.

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

using Bits = uint16_t;

double value_of(Bits bits) {
  return static_cast<double>(std::bit_cast<_Float16>(bits));
}
// NaN is always the one with all bits but the sign set.
Bits half_of(double value) {
  return value != value ? Bits{0x7FFF} : std::bit_cast<Bits>(static_cast<_Float16>(value));
}
double flushed(double value) {
  return std::fabs(value) < 0x1p-14 ? std::copysign(0.0, value) : value;
}

std::vector<Bits> interesting() {
  std::vector<Bits> values = {0,      0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF, 0x0400,
                              0x03FF, 0x0001, 0x8001, 0x3C01, 0x3BFF, 0x4900, 0x6800, 0x1400, 0x3E00, 0xC200};
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<Bits>(random()));
  return values;
}
std::vector<std::tuple<Bits, Bits>> half_pairs() {
  std::vector<std::tuple<Bits, Bits>> result;
  for (Bits a : interesting())
    for (Bits b : interesting()) result.emplace_back(a, b);
  return result;
}
std::vector<std::tuple<Bits, Bits, Bits>> half_triples() {
  std::vector<std::tuple<Bits, Bits, Bits>> result;
  auto values = interesting();
  std::mt19937 random(5);
  auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < 2000; ++i) result.emplace_back(any(), any(), any());
  return result;
}

TEST(Half, SumsAndProductsRoundOnce) {
  expect_instruction<Bits, Bits, Bits>("add.f16 %d, %a, %b;", half_pairs(),
                                       [](Bits a, Bits b) { return half_of(value_of(a) + value_of(b)); });
  expect_instruction<Bits, Bits, Bits>("mul.rn.f16 %d, %a, %b;", half_pairs(),
                                       [](Bits a, Bits b) { return half_of(value_of(a) * value_of(b)); });
  expect_instruction<Bits, Bits, Bits, Bits>("fma.rn.f16 %d, %a, %b, %c;", half_triples(), [](Bits a, Bits b, Bits c) {
    return half_of(value_of(a) * value_of(b) + value_of(c));
  });
}

TEST(Half, FlushingSaturatingAndCuttingOffBelowZero) {
  expect_instruction<Bits, Bits, Bits>("add.ftz.f16 %d, %a, %b;", half_pairs(), [](Bits a, Bits b) {
    return half_of(flushed(flushed(value_of(a)) + flushed(value_of(b))));
  });
  expect_instruction<Bits, Bits, Bits>("mul.sat.f16 %d, %a, %b;", half_pairs(), [](Bits a, Bits b) {
    double product = value_of(a) * value_of(b);
    return half_of(product > 0 ? std::min(product, 1.0) : 0.0);
  });
  expect_instruction<Bits, Bits, Bits, Bits>("fma.rn.relu.f16 %d, %a, %b, %c;", half_triples(),
                                             [](Bits a, Bits b, Bits c) {
                                               double sum = value_of(a) * value_of(b) + value_of(c);
                                               return half_of(sum <= 0 ? 0.0 : sum);
                                             });
}

TEST(Half, PairsAreTwoHalves) {
  std::vector<std::tuple<uint32_t, uint32_t>> inputs;
  for (auto [a, b] : half_pairs()) inputs.emplace_back(uint32_t{b} << 16 | a, uint32_t{a} << 16 | b);
  auto each = [](uint32_t a, uint32_t b, auto operate) {
    Bits low = operate(static_cast<Bits>(a), static_cast<Bits>(b));
    return uint32_t{operate(static_cast<Bits>(a >> 16), static_cast<Bits>(b >> 16))} << 16 | low;
  };
  expect_instruction<uint32_t, uint32_t, uint32_t>("sub.f16x2 %d, %a, %b;", inputs, [=](uint32_t a, uint32_t b) {
    return each(a, b, [](Bits x, Bits y) { return half_of(value_of(x) - value_of(y)); });
  });
  expect_instruction<uint32_t, uint32_t, uint32_t>(
      "set.lt.f16x2.f16x2 %d, %a, %b;", inputs, [=](uint32_t a, uint32_t b) {
        return each(a, b, [](Bits x, Bits y) { return value_of(x) < value_of(y) ? Bits{0x3C00} : Bits{0}; });
      });
  expect_instruction<uint32_t, uint32_t, uint32_t>(
      "setp.geu.f16x2 %p|%q, %a, %b; selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 65536;", inputs,
      [=](uint32_t a, uint32_t b) {
        return each(a, b, [](Bits x, Bits y) { return Bits{!(value_of(x) < value_of(y))}; });
      });
}

TEST(Half, ConversionsOfEveryRounding) {
  auto inputs = singles<float>();
  expect_instruction<Bits, float>("cvt.rn.f16.f32 %d, %a;", inputs, [](float a) { return half_of(a); });
  expect_instruction<float, Bits>("cvt.f32.f16 %d, %a;", singles<Bits>(),
                                  [](Bits a) { return static_cast<float>(value_of(a)); });
  // The nearest one, moved towards zero, down or up where it lies on the wrong side.
  auto towards = [](float a, auto wrong) {
    Bits bits = half_of(a);
    if (a != a || !wrong(value_of(bits), static_cast<double>(a))) return bits;
    bool shrink = std::fabs(value_of(bits)) > std::fabs(a);
    if (bits == 0x8000 || bits == 0) return static_cast<Bits>(std::signbit(a) ? 0x8001 : 0x0001);
    return static_cast<Bits>(shrink ? bits - 1 : bits + 1);
  };
  expect_instruction<Bits, float>("cvt.rz.f16.f32 %d, %a;", inputs, [=](float a) {
    return std::isinf(a) ? half_of(a) : towards(a, [](double r, double x) { return std::fabs(r) > std::fabs(x); });
  });
  expect_instruction<Bits, float>("cvt.rm.f16.f32 %d, %a;", inputs, [=](float a) {
    return std::isinf(a) ? half_of(a) : towards(a, [](double r, double x) { return r > x; });
  });
  expect_instruction<Bits, float>("cvt.rp.f16.f32 %d, %a;", inputs, [=](float a) {
    return std::isinf(a) ? half_of(a) : towards(a, [](double r, double x) { return r < x; });
  });
}

TEST(Brain, AFusedProductNextToATieIsNotRoundedTwice) {
  // 1.0078125 * 1.5 = 1.51171875 lies half way between two bf16; the addend, far below an f64's last bit, decides.
  constexpr Bits kTiny = 0x0001, kMinusTiny = 0x8001;
  expect_instruction<Bits, Bits>("fma.rn.bf16 %d, 0x3F81, 0x3FC0, %a;",
                                 std::vector<std::tuple<Bits>>{{kTiny}, {kMinusTiny}, {Bits{0}}}, [](Bits c) {
                                   return static_cast<Bits>(c == kTiny ? 0x3FC2 : c == kMinusTiny ? 0x3FC1 : 0x3FC2);
                                 });
}

TEST(Brain, ConversionsFromIntegersAreRoundedOnce) {
  // Half way between two bf16, and one more: an f64 between would lose the one.
  constexpr uint64_t kTie = (1ull << 62) + (1ull << 54);
  expect_instruction<Bits, uint64_t>("cvt.rn.bf16.u64 %d, %a;",
                                     std::vector<std::tuple<uint64_t>>{{kTie}, {kTie + 1}, {kTie - 1}, {3}},
                                     [](uint64_t a) {
                                       return static_cast<Bits>(a == 3 ? 0x4040 : a == kTie + 1 ? 0x5E81 : 0x5E80);
                                     });
}

TEST(Tensor, RoundsAwayFromZeroInTheMiddle) {
  expect_instruction<uint32_t, uint32_t>(
      "cvt.rna.tf32.f32 %d, %a;", std::vector<std::tuple<uint32_t>>{{0x3F801000}, {0xBF801000}, {0x3F800FFF}},
      [](uint32_t a) { return a == 0x3F800FFF ? 0x3F800000 : (a & 0xFFFFE000) + 0x2000; });
}

TEST(Bytes, OfBothKindsAndBack) {
  // 448 and 57344 are the largest; 464 and beyond become them; NaN is all ones.
  expect_instruction<uint32_t, float>(".reg .b16 %h; cvt.rn.satfinite.e4m3x2.f32 %h, %a, 1.0; cvt.u32.u16 %d, %h;",
                                      std::vector<std::tuple<float>>{{448.0f}, {1e9f}, {-0.5f}, {0x1p-9f}, {0x1p-10f}},
                                      [](float a) {
                                        uint32_t high = a >= 448 ? 0x7E : a == -0.5f ? 0xB0 : a == 0x1p-9f ? 1 : 0;
                                        return high << 8 | 0x38;
                                      });
  expect_instruction<uint32_t, uint16_t>("cvt.rn.f16x2.e4m3x2 %d, %a;",
                                         std::vector<std::tuple<uint16_t>>{{uint16_t{0x7E01}}, {uint16_t{0x38B0}}},
                                         [](uint16_t a) { return a == 0x7E01 ? 0x5F001800u : 0x3C00B800u; });
}

}  // namespace
}  // namespace heddle::software::testing
