#include "library/quasi_random.h"

#include <cmath>
#include <numbers>

#include "library/random.h"
#include "library/sobol.h"

namespace heddle::library::curand {
namespace {

// The middle of the point's 2^-32th, or of its 2^-53rd where it has as many bits: never 0.
double uniform_of(uint64_t point, bool wide) {
  if (!wide) return static_cast<double>(point >> 32) * 0x1p-32 + 0x1p-33;
  return static_cast<double>(point >> 11) * 0x1p-53 + 0x1p-54;
}

// The probability of less than `normal`.
double below(double normal) {
  return std::erfc(-normal / std::numbers::sqrt2) / 2;
}

// What a normal number is below with probability `uniform`: an approximation (Abramowitz and Stegun, 26.2.22), then
// Halley's iteration. In the upper half by symmetry, where it would lose digits.
double normal_of(double uniform) {
  if (uniform > 0.5) return -normal_of(1 - uniform);
  const double t = std::sqrt(-2 * std::log(uniform));
  double normal = (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t)) - t;
  for (int i = 0; i < 3; ++i) {
    const double density = std::exp(-normal * normal / 2) / std::sqrt(2 * std::numbers::pi);
    const double step = (below(normal) - uniform) / density;
    normal -= step / (1 + normal * step / 2);
  }
  return normal;
}

// Calls `body(index, point)` for each number of the call.
template <class Body>
void for_each_point(const Draw& draw, Body&& body) {
  const uint64_t points = draw.count / draw.dimensions;
  uint64_t index = 0;
  for (uint32_t dimension = 0; dimension < draw.dimensions; ++dimension) {
    SobolPoints from(dimension, is_scrambled(draw.type), draw.position);
    for (uint64_t i = 0; i < points; ++i) body(index++, from.next());
  }
}

template <class Number, class Convert>
void draw_each(const Draw& draw, void* to, Convert&& convert) {
  auto* const numbers = static_cast<Number*>(to);
  for_each_point(draw, [&](uint64_t index, uint64_t point) { numbers[index] = static_cast<Number>(convert(point)); });
}

}  // namespace

void generate_quasi_random(Function function, const Draw& draw, void* to) {
  const bool wide = has_64_bits(draw.type);
  const auto uniform = [wide](uint64_t point) { return uniform_of(point, wide); };
  const auto normal = [&](uint64_t point) { return draw.a + draw.b * normal_of(uniform(point)); };
  const auto log_normal = [&](uint64_t point) { return std::exp(normal(point)); };
  switch (function) {
    case Function::kBits:
      return draw_each<uint32_t>(draw, to, [](uint64_t point) { return point >> 32; });
    case Function::kBits64:
      return draw_each<uint64_t>(draw, to, [](uint64_t point) { return point; });
    case Function::kUniform:
      return draw_each<float>(draw, to, uniform);
    case Function::kUniformDouble:
      return draw_each<double>(draw, to, uniform);
    case Function::kNormal:
      return draw_each<float>(draw, to, normal);
    case Function::kNormalDouble:
      return draw_each<double>(draw, to, normal);
    case Function::kLogNormal:
      return draw_each<float>(draw, to, log_normal);
    case Function::kLogNormalDouble:
      return draw_each<double>(draw, to, log_normal);
    default:
      return draw_each<uint32_t>(draw, to, [&](uint64_t point) {
        if (draw.a <= kInversionLimit) return poisson_of(uniform(point), draw.a);
        return poisson_near(normal_of(uniform(point)), draw.a);
      });
  }
}

void write_table(Function function, const Draw& draw, void* to) {
  auto* const words = static_cast<uint32_t*>(to);
  auto* const long_words = static_cast<uint64_t*>(to);
  const uint32_t each = function == Function::kDirections32 ? 32 : function == Function::kDirections64 ? 64 : 1;
  for (uint32_t dimension = 0; dimension < draw.count / each; ++dimension) {
    const uint64_t first = uint64_t{dimension} * each;
    if (function == Function::kShifts32) words[first] = static_cast<uint32_t>(sobol_shift(dimension) >> 32);
    if (function == Function::kShifts64) long_words[first] = sobol_shift(dimension);
    if (each == 1) continue;
    const auto directions = sobol_directions(dimension);
    for (uint32_t i = 0; i < each; ++i) {
      if (each == 32) words[first + i] = static_cast<uint32_t>(directions[i] >> 32);
      if (each == 64) long_words[first + i] = directions[i];
    }
  }
}

}  // namespace heddle::library::curand
