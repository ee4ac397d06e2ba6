// A libcurand for tests on machines without a GPU, in the place of NVIDIA's: what a worker calls of it. Every type has
// numbers of its own, the same on the host and on the device, and none that heddle's own generators would make. Writes
// to device memory directly, which the driver for tests lets it do.

#include <cmath>
#include <cstddef>
#include <cstdint>

// NOLINTBEGIN: the names and signatures are the library's.

namespace {

struct Generator {
  int type = 0;
  uint64_t seed = 0, position = 0, dimensions = 1;
};

uint32_t bits(const Generator& of, uint64_t position) {
  uint64_t x = of.seed + 0x9e3779b97f4a7c15 * (position + 1) + static_cast<uint64_t>(of.type) * 0xd1342543de82ef95;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<uint32_t>(x >> 32);
}

template <class Number, class Make>
int generate(void* generator, Number* to, size_t count, Make make) {
  auto& of = *static_cast<Generator*>(generator);
  const uint64_t points = count / of.dimensions;
  for (uint64_t dimension = 0; dimension < of.dimensions; ++dimension) {
    const Generator its{of.type, of.seed + dimension, 0};
    for (uint64_t i = 0; i < points; ++i) *to++ = static_cast<Number>(make(bits(its, of.position + i)));
  }
  of.position += points;
  return 0;
}

double uniform(uint32_t word) {
  return (word + 0.5) / 4294967296.0;
}

int create(void** generator, int type) {
  *generator = new Generator{type};
  return 0;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API curandGetVersion(int* version) {
  *version = 10400;
  return 0;
}
API curandCreateGenerator(void** generator, int type) {
  return create(generator, type);
}
API curandCreateGeneratorHost(void** generator, int type) {
  return create(generator, type);
}
API curandDestroyGenerator(void* generator) {
  delete static_cast<Generator*>(generator);
  return 0;
}
API curandSetStream(void*, void*) {
  return 0;
}
API curandSetGeneratorOrdering(void*, int) {
  return 0;
}
API curandSetPseudoRandomGeneratorSeed(void* generator, unsigned long long seed) {
  *static_cast<Generator*>(generator) = {static_cast<Generator*>(generator)->type, seed, 0};
  return 0;
}
API curandSetQuasiRandomGeneratorDimensions(void* generator, unsigned dimensions) {
  static_cast<Generator*>(generator)->dimensions = dimensions;
  static_cast<Generator*>(generator)->position = 0;
  return 0;
}
API curandSetGeneratorOffset(void* generator, unsigned long long offset) {
  static_cast<Generator*>(generator)->position = offset;
  return 0;
}
API curandGenerate(void* generator, unsigned* to, size_t count) {
  return generate(generator, to, count, [](uint32_t word) { return word; });
}
API curandGenerateUniform(void* generator, float* to, size_t count) {
  return generate(generator, to, count, uniform);
}
API curandGenerateUniformDouble(void* generator, double* to, size_t count) {
  return generate(generator, to, count, uniform);
}
API curandGenerateNormal(void* generator, float* to, size_t count, float mean, float deviation) {
  return generate(generator, to, count, [=](uint32_t word) { return mean + deviation * (uniform(word) - 0.5); });
}
API curandGenerateNormalDouble(void* generator, double* to, size_t count, double mean, double deviation) {
  return generate(generator, to, count, [=](uint32_t word) { return mean + deviation * (uniform(word) - 0.5); });
}
API curandGeneratePoisson(void* generator, unsigned* to, size_t count, double mean) {
  return generate(generator, to, count, [=](uint32_t word) { return mean * 2 * uniform(word); });
}

API curandGenerateLongLong(void* generator, unsigned long long* to, size_t count) {
  return generate(generator, to, count, [](uint32_t word) { return uint64_t{word} << 32 | ~word; });
}

// Of each table only so much as that its place shows.
API curandGetDirectionVectors32(const unsigned (**vectors)[32], int set) {
  static unsigned table[20000][32];
  for (unsigned i = 0; i < 20000; ++i) table[i][0] = i * 1000 + static_cast<unsigned>(set);
  *vectors = table;
  return 0;
}
API curandGetScrambleConstants64(const unsigned long long** constants) {
  static unsigned long long table[20000];
  for (unsigned i = 0; i < 20000; ++i) table[i] = i + 7;
  *constants = table;
  return 0;
}

// NOLINTEND
