// Floating-point instructions against the host's IEEE arithmetic.

#include <cfenv>
#include <cmath>

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

float flushed(float a) {
  return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a;
}
float saturated(float a) {
  return a > 0 ? std::min(a, 1.0f) : 0.0f;
}

template <class T>
class Float : public ::testing::Test {
 protected:
  static std::string with(const std::string& opcode) { return opcode + "." + PtxType<T>::kMemory; }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Float, Types);

TYPED_TEST(Float, ArithmeticIsIeee) {
  using T = TypeParam;
  auto inputs = pairs<T, T>();
  expect_instruction<T, T, T>(this->with("add") + " %d, %a, %b;", inputs, [](T a, T b) { return a + b; });
  expect_instruction<T, T, T>(this->with("add.rn") + " %d, %a, %b;", inputs, [](T a, T b) { return a + b; });
  expect_instruction<T, T, T>(this->with("sub") + " %d, %a, %b;", inputs, [](T a, T b) { return a - b; });
  expect_instruction<T, T, T>(this->with("mul") + " %d, %a, %b;", inputs, [](T a, T b) { return a * b; });
  expect_instruction<T, T, T>(this->with("div.rn") + " %d, %a, %b;", inputs, [](T a, T b) { return a / b; });
  expect_instruction<T, T>(this->with("rcp.rn") + " %d, %a;", singles<T>(), [](T a) { return T(1) / a; });
  expect_instruction<T, T>(this->with("sqrt.rn") + " %d, %a;", singles<T>(), [](T a) { return std::sqrt(a); });
}

TYPED_TEST(Float, FusedProductsRoundOnce) {
  using T = TypeParam;
  auto inputs = triples<T, T, T>();
  expect_instruction<T, T, T, T>(this->with("fma.rn") + " %d, %a, %b, %c;", inputs,
                                 [](T a, T b, T c) { return std::fma(a, b, c); });
  expect_instruction<T, T, T, T>(this->with("mad.rn") + " %d, %a, %b, %c;", inputs,
                                 [](T a, T b, T c) { return std::fma(a, b, c); });
}

TYPED_TEST(Float, MinimumPrefersNumbersAndNegativeZero) {
  using T = TypeParam;
  auto less = [](T a, T b) { return a < b || (a == b && std::signbit(a)); };
  expect_instruction<T, T, T>(this->with("min") + " %d, %a, %b;", pairs<T, T>(), [=](T a, T b) {
    return a != a ? b : b != b ? a : less(a, b) ? a : b;
  });
  expect_instruction<T, T, T>(this->with("max") + " %d, %a, %b;", pairs<T, T>(), [=](T a, T b) {
    return a != a ? b : b != b ? a : less(a, b) ? b : a;
  });
}

TYPED_TEST(Float, SignsAreBits) {
  using T = TypeParam;
  expect_instruction<T, T>(this->with("neg") + " %d, %a;", singles<T>(), [](T a) { return -a; });
  expect_instruction<T, T>(this->with("abs") + " %d, %a;", singles<T>(), [](T a) { return std::fabs(a); });
  expect_instruction<T, T, T>(this->with("copysign") + " %d, %a, %b;", pairs<T, T>(),
                              [](T a, T b) { return std::copysign(b, a); });
}

TYPED_TEST(Float, RoundingInOtherDirections) {
  using T = TypeParam;
  struct Direction {
    const char* name;
    int mode;
  };
  for (Direction direction : {Direction{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}}) {
    // volatile: the host's arithmetic must happen in the mode that is set around it.
    auto rounded = [=](auto compute, T a, T b = 0) {
      volatile T x = a, y = b;
      std::fesetround(direction.mode);
      volatile T result = compute(x, y);
      std::fesetround(FE_TONEAREST);
      return static_cast<T>(result);
    };
    auto name = [&](const char* opcode) { return this->with(std::string(opcode) + "." + direction.name); };
    auto expect_rounded = [&](const char* opcode, auto compute) {
      expect_instruction<T, T, T>(name(opcode) + " %d, %a, %b;", pairs<T, T>(),
                                  [=](T a, T b) { return rounded(compute, a, b); });
    };
    expect_rounded("add", [](volatile T& a, volatile T& b) { return a + b; });
    expect_rounded("mul", [](volatile T& a, volatile T& b) { return a * b; });
    expect_rounded("div", [](volatile T& a, volatile T& b) { return a / b; });
    expect_instruction<T, T>(name("sqrt") + " %d, %a;", singles<T>(),
                             [=](T a) { return rounded([](volatile T& x, volatile T&) { return std::sqrt(x); }, a); });
  }
}

// Two floats in one register: each half must be what the instruction on one float gives.
TEST(FloatPairs, AreTwoFloats) {
  const std::string registers = ".reg .b64 %x, %y, %z; .reg .f32 %e;\n";
  const auto on_half = [&](const std::string& operation, bool high, auto reference) {
    const std::string halves = high ? "mov.b64 %x, {%c, %a}; mov.b64 %y, {%a, %b}; mov.b64 %z, {%b, %c};\n"
                                    : "mov.b64 %x, {%a, %c}; mov.b64 %y, {%b, %a}; mov.b64 %z, {%c, %b};\n";
    const std::string result = high ? "mov.b64 {%e, %d}, %x;" : "mov.b64 {%d, %e}, %x;";
    expect_instruction<float, float, float, float>(halves + operation + result, triples<float, float, float>(),
                                                   reference, registers);
  };
  const auto flushed = [](float a) { return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a; };
  for (bool high : {false, true}) {
    on_half("add.rn.f32x2 %x, %x, %y;", high, [](float a, float b, float) { return a + b; });
    on_half("sub.f32x2 %x, %x, %y;", high, [](float a, float b, float) { return a - b; });
    on_half("mul.rn.f32x2 %x, %x, %y;", high, [](float a, float b, float) { return a * b; });
    on_half("fma.rn.f32x2 %x, %x, %y, %z;", high, [](float a, float b, float c) { return std::fma(a, b, c); });
    on_half("add.ftz.f32x2 %x, %x, %y;", high,
            [=](float a, float b, float) { return flushed(flushed(a) + flushed(b)); });
    on_half("add.rz.f32x2 %x, %x, %y;", high, [](float a, float b, float) {
      volatile float x = a, y = b;
      std::fesetround(FE_TOWARDZERO);
      volatile float sum = x + y;
      std::fesetround(FE_TONEAREST);
      return static_cast<float>(sum);
    });
  }
}

TYPED_TEST(Float, ClassTests) {
  using T = TypeParam;
  auto expect_class = [&](const char* name, auto reference) {
    expect_instruction<uint32_t, T>(this->with(std::string("testp.") + name) + " %p, %a; selp.u32 %d, 1, 0, %p;",
                                    singles<T>(), [=](T a) { return reference(a) ? 1u : 0u; });
  };
  expect_class("finite", [](T a) { return std::isfinite(a); });
  expect_class("infinite", [](T a) { return std::isinf(a); });
  expect_class("number", [](T a) { return !std::isnan(a); });
  expect_class("notanumber", [](T a) { return std::isnan(a); });
  expect_class("normal", [](T a) { return std::isnormal(a) || a == 0; });
  expect_class("subnormal", [](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

TEST(FloatForms, FlushingSubnormalsOnTheWayInAndOut) {
  using F = float;
  auto inputs = pairs<F, F>();
  expect_instruction<F, F, F>("add.ftz.f32 %d, %a, %b;", inputs,
                              [](F a, F b) { return flushed(flushed(a) + flushed(b)); });
  expect_instruction<F, F, F>("mul.ftz.f32 %d, %a, %b;", inputs,
                              [](F a, F b) { return flushed(flushed(a) * flushed(b)); });
  expect_instruction<F, F, F>("div.rn.ftz.f32 %d, %a, %b;", inputs,
                              [](F a, F b) { return flushed(flushed(a) / flushed(b)); });
  expect_instruction<F, F, F, F>("fma.rn.ftz.f32 %d, %a, %b, %c;", triples<F, F, F>(),
                                 [](F a, F b, F c) { return flushed(std::fma(flushed(a), flushed(b), flushed(c))); });
}

TEST(FloatForms, SaturationMapsNanToZero) {
  using F = float;
  expect_instruction<F, F, F>("add.sat.f32 %d, %a, %b;", pairs<F, F>(), [](F a, F b) { return saturated(a + b); });
  expect_instruction<F, F, F, F>("fma.rn.sat.f32 %d, %a, %b, %c;", triples<F, F, F>(),
                                 [](F a, F b, F c) { return saturated(std::fma(a, b, c)); });
}

TEST(FloatForms, MinimumInWhichNanWins) {
  expect_instruction<float, float, float>("min.NaN.f32 %d, %a, %b;", pairs<float, float>(), [](float a, float b) {
    if (a != a || b != b) return std::numeric_limits<float>::quiet_NaN();
    return a < b || (a == b && std::signbit(a)) ? a : b;
  });
}

TEST(FloatForms, ApproximationsAtSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* code;
    float in, out;
  };
  const Case cases[] = {
      {"ex2.approx.ftz.f32", 0, 1},
      {"ex2.approx.ftz.f32", -infinity, 0},
      {"ex2.approx.ftz.f32", infinity, infinity},
      {"ex2.approx.f32", 10, 1024},
      {"lg2.approx.f32", 8, 3},
      {"lg2.approx.f32", 0, -infinity},
      {"lg2.approx.ftz.f32", 1, 0},
      {"rcp.approx.f32", 4, 0.25f},
      {"rcp.approx.ftz.f32", -0.0f, -infinity},
      {"rsqrt.approx.f32", 16, 0.25f},
      {"rsqrt.approx.ftz.f32", 0, infinity},
      {"sqrt.approx.f32", 9, 3},
      {"sin.approx.f32", 0, 0},
      {"cos.approx.f32", 0, 1},
      {"tanh.approx.f32", infinity, 1},
  };
  for (const Case& c : cases)
    expect_instruction<float, float>(std::string(c.code) + " %d, %a;", std::vector<std::tuple<float>>{{c.in}},
                                     [=](float) { return c.out; });
  expect_instruction<float, float>("lg2.approx.f32 %d, %a;", std::vector<std::tuple<float>>{{-1.0f}},
                                   [](float) { return std::numeric_limits<float>::quiet_NaN(); });
}

TEST(FloatForms, DivisionByReciprocalsThatAreFlushed) {
  const float infinity = std::numeric_limits<float>::infinity();
  using Pairs = std::vector<std::tuple<float, float>>;
  expect_instruction<float, float, float>(
      "div.approx.f32 %d, %a, %b;", Pairs{{1e38f, 0x1p127f}, {-1e38f, 0x1.8p126f}, {1, -infinity}, {6, 2}},
      [](float a, float b) { return b == 2 ? 3.0f : std::copysign(0.0f, a * (b > 0 ? 1 : -1)); });
  expect_instruction<float, float, float>("div.approx.f32 %d, %a, %b;", Pairs{{infinity, 0x1p127f}},
                                          [](float, float) { return std::numeric_limits<float>::quiet_NaN(); });
}

TEST(FloatForms, LargeAnglesAreReducedAsTheDeviceDoes) {
  // The product with 1 / 2 pi is rounded to zero to an f32, so that beyond 2^24 revolutions every angle is none.
  using Angles = std::vector<std::tuple<float>>;
  expect_instruction<float, float>("sin.approx.f32 %d, %a;", Angles{{1e9f}, {-0.0f}, {0.0f}},
                                   [](float a) { return std::copysign(0.0f, a); });
  expect_instruction<float, float>("cos.approx.f32 %d, %a;", Angles{{1e9f}, {-3e30f}}, [](float) { return 1.0f; });
  expect_instruction<float, float>("sin.approx.f32 %d, %a;", Angles{{1e6f}, {100.0f}, {-7.5f}}, [](float a) {
    const double kPerRevolution = static_cast<double>(0.15915494f), kRevolution = 6.283185307179586477;
    double turns = static_cast<double>(a) * kPerRevolution;
    double step = std::ldexp(1.0, std::ilogb(turns) - 23);
    turns = std::trunc(turns / step) * step;
    return static_cast<float>(std::sin((turns - std::rint(turns)) * kRevolution));
  });
}

TEST(FloatForms, GrossReciprocalLeavesTheLowerHalfZero) {
  std::vector<std::tuple<double>> inputs = {{3.0}, {-7.5}, {0.0}, {1e300}, {5e-324}};
  expect_instruction<uint64_t, double>(
      ".reg .f64 %x; rcp.approx.ftz.f64 %x, %a; mov.b64 %d, %x;", inputs, [](double a) {
        double upper =
            std::fpclassify(a) == FP_SUBNORMAL ? 0 : std::bit_cast<double>(std::bit_cast<uint64_t>(a) >> 32 << 32);
        return std::bit_cast<uint64_t>(1 / upper) >> 32 << 32;
      });
}

}  // namespace
}  // namespace heddle::software::testing
