#pragma once

#include <cstdint>

// Sequences of random numbers, each a function of a seed and a position. Positions count what was drawn, whatever it
// was. The order of the numbers is that of cuRAND's host API for CURAND_RNG_PSEUDO_PHILOX4_32_10: 65536 subsequences of
// Philox take turns, four numbers each (docs/libraries.md).
namespace heddle::library {

struct Sequence {
  uint64_t seed = 0, position = 0;
};

void draw_bits(const Sequence& from, uint32_t* to, uint64_t count);
// In (0, 1].
void draw_uniform(const Sequence& from, float* to, uint64_t count);
void draw_uniform(const Sequence& from, double* to, uint64_t count);
// By Box and Muller's transformation, in pairs that begin at even positions.
void draw_normal(const Sequence& from, float* to, uint64_t count, float mean, float deviation);
void draw_normal(const Sequence& from, double* to, uint64_t count, double mean, double deviation);
// By inversion; where `mean` is large, by the normal distribution that it comes near.
void draw_poisson(const Sequence& from, uint32_t* to, uint64_t count, double mean);
// The number that a uniform one leads to, for means up to the limit; beyond, exp(-mean) has no use left.
inline constexpr double kInversionLimit = 500;
uint32_t poisson_of(double uniform, double mean);
// The number that a normal one, of mean 0 and deviation 1, leads to where `mean` is large.
uint32_t poisson_near(double normal, double mean);

}  // namespace heddle::library
