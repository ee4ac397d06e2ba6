#pragma once

#include <array>
#include <cstdint>

// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC11): four words for each counter of 128 bits, by ten rounds of multiplications under a key of 64 bits.
namespace heddle::library {

using PhiloxBlock = std::array<uint32_t, 4>;

PhiloxBlock philox(PhiloxBlock counter, uint64_t key);

}  // namespace heddle::library
