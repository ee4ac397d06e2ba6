#pragma once

#include <cstdint>

// Half precision and bfloat16 as their bits. To them: the nearest, ties to even.
namespace heddle::library {

float float_of_half(uint16_t bits);
uint16_t half_of(float value);
float float_of_bfloat(uint16_t bits);
uint16_t bfloat_of(float value);

}  // namespace heddle::library
