// Generators of the host and of the device have the same numbers, whatever their type, in one call or in several, and
// types differ. Prints PASS; with an argument, the first number of an XORWOW generator of the host with seed 1234.
#include <curand.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                     \
  do {                                                                  \
    if (const int status = static_cast<int>(call); status != 0) {       \
      std::printf("line %d: %s: status %d\n", __LINE__, #call, status); \
      std::exit(1);                                                     \
    }                                                                   \
  } while (false)

constexpr curandRngType_t kTypes[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
                                      CURAND_RNG_PSEUDO_PHILOX4_32_10};
constexpr size_t kCount = (9 << 20) + 4;  // more than a piece

static curandGenerator_t make(curandRngType_t type, bool host) {
  curandGenerator_t generator;
  CHECK(host ? curandCreateGeneratorHost(&generator, type) : curandCreateGenerator(&generator, type));
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  return generator;
}

// Points of two dimensions, more than a piece: the host's stand dimension by dimension, as the device's do. Tables come
// whole.
static bool quasi_random_numbers(unsigned* memory) {
  curandGenerator_t host, device;
  CHECK(curandCreateGeneratorHost(&host, CURAND_RNG_QUASI_SOBOL32));
  CHECK(curandCreateGenerator(&device, CURAND_RNG_QUASI_SOBOL32));
  for (const curandGenerator_t each : {host, device}) CHECK(curandSetQuasiRandomGeneratorDimensions(each, 2));
  std::vector<unsigned> made(kCount), there(kCount);
  for (int times = 0; times < 2; ++times) {
    CHECK(curandGenerate(device, memory, kCount));
    CHECK(cudaMemcpy(there.data(), memory, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(curandGenerate(host, made.data(), kCount));
    if (made != there) return false;
  }
  CHECK(curandDestroyGenerator(host));
  CHECK(curandDestroyGenerator(device));
  curandDirectionVectors32_t *vectors, *again;
  unsigned long long* constants;
  CHECK(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
  CHECK(curandGetDirectionVectors32(&again, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
  CHECK(curandGetScrambleConstants64(&constants));
  return vectors == again && constants[19999] != 0 && constants[19998] != constants[19999];
}

int main(int argc, char**) {
  if (argc > 1) {
    unsigned first = 0;
    CHECK(curandGenerate(make(CURAND_RNG_PSEUDO_XORWOW, true), &first, 1));
    std::printf("%u\n", first);
    return 0;
  }
  unsigned* memory;
  float* floats;
  CHECK(cudaMalloc(&memory, kCount * sizeof(unsigned)));
  CHECK(cudaMalloc(&floats, kCount * sizeof(float)));
  for (const curandRngType_t type : kTypes) {
    const curandGenerator_t host = make(type, true), device = make(type, false);
    std::vector<unsigned> made(kCount), there(kCount);
    CHECK(curandGenerate(device, memory, kCount));
    CHECK(cudaMemcpy(there.data(), memory, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(curandGenerate(host, made.data(), kCount));
    if (made != there) {
      std::printf("type %d: the host's numbers are not the device's\n", type);
      return 1;
    }
    std::vector<float> reals(kCount), reals_there(kCount);
    CHECK(curandGenerateUniform(device, floats, kCount));
    CHECK(cudaMemcpy(reals_there.data(), floats, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(curandGenerateUniform(host, reals.data(), 1 << 20));
    CHECK(curandGenerateUniform(host, reals.data() + (1 << 20), kCount - (1 << 20)));
    if (reals != reals_there) {
      std::printf("type %d: the host's uniform numbers are not the device's\n", type);
      return 1;
    }
    CHECK(curandDestroyGenerator(host));
    CHECK(curandDestroyGenerator(device));
  }
  if (!quasi_random_numbers(memory)) {
    std::puts("quasi random numbers of the host are not the device's");
    return 1;
  }
  std::puts("PASS");
}
