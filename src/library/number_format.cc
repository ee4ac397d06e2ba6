#include "library/number_format.h"

#include <bit>
#include <cmath>

namespace heddle::library {
namespace {

constexpr uint32_t kSign = 0x80000000;

// `bits` without its last `drop`, rounded to nearest even.
uint32_t rounded(uint32_t bits, int drop) {
  const uint32_t half = 1u << (drop - 1), odd = (bits >> drop) & 1;
  return (bits + half - 1 + odd) >> drop;
}

}  // namespace

float float_of_half(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return std::bit_cast<float>(uint32_t{bits & 0x8000u} << 16 | 0x7f800000 | fraction << 13);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction | 1024), static_cast<int>(exponent) - 25);
}

uint16_t half_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kSign) >> 16, magnitude = bits & ~kSign;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 1023));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and more round to infinity
  if (magnitude < 0x38800000) {                                              // below 2^-14: steps of 2^-24
    const float steps = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(steps));
  }
  return static_cast<uint16_t>(sign | rounded(magnitude - 0x38000000, 13));
}

float float_of_bfloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & ~kSign) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits & kSign) >> 16 | rounded(bits & ~kSign, 16));
}

}  // namespace heddle::library
