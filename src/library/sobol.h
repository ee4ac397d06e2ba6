#pragma once

#include <array>
#include <cstdint>

// Sobol' sequences (I. M. Sobol', "On the distribution of points in a cube", 1967) in up to 20000 dimensions, as
// digital sequences in Gray code order (Antonov and Saleev, 1979). Each dimension has a primitive polynomial over
// GF(2), in order of degree; the numbers that its recurrence starts from are chosen by a fixed pseudo random sequence,
// as P. Jaeckel does in "Monte Carlo methods in finance": so 2^k points of a dimension lie one in each of 2^k equal
// parts, and tables of better numbers, which others have published, are not needed. The sequences are not those of
// NVIDIA's library.
namespace heddle::library {

inline constexpr uint32_t kSobolDimensions = 20000;
inline constexpr uint32_t kSobolBits = 64;

// Direction vectors, the first bit behind the point in the highest: those of 32 bits are their upper halves.
std::array<uint64_t, kSobolBits> sobol_directions(uint32_t dimension);
// What a dimension's points are shifted by where they are scrambled.
uint64_t sobol_shift(uint32_t dimension);

// The points of one dimension from `position` on, one after the other.
class SobolPoints {
 public:
  SobolPoints(uint32_t dimension, bool scrambled, uint64_t position);
  uint64_t next();

 private:
  std::array<uint64_t, kSobolBits> directions_;
  uint64_t index_, point_;
};

}  // namespace heddle::library
