// libcurand.so.10: cuRAND's host API. Generators of the device are forwarded to the worker; those of the host too where
// the device is a GPU, so that both have NVIDIA's numbers, else they draw here, as software devices do. Tables of the
// library's and discrete distributions are in curand_tables.cc and curand_discrete.cc.

#include "client/libraries/curand_generator.h"

namespace heddle::client {
namespace {

constexpr int kVersion = 10400;  // whose interface this is
constexpr int kMtgp32 = 141, kMt19937 = 142;
constexpr double kLargestMean = 400000;  // of a Poisson distribution, as cuRAND documents

Outcome create(void** generator, int type, const heddle_library_functions* runtime, bool host) {
  if (!generator) return Outcome::kOutOfRange;
  *generator = nullptr;  // a program that looks at no status is told again by the next call
  if (!library::curand::is_pseudo_random(type) && !library::curand::is_quasi_random(type)) return Outcome::kTypeError;
  auto handle = std::make_unique<Handle>();
  handle->generator = make_generator(type, runtime, host);
  *generator = handle.release();
  return Outcome::kSuccess;
}

// Quasi random generators of 64 bits have such numbers only, where bits are asked for, and no others have them.
bool has(const Generator& generator, Function function) {
  const bool wide = library::curand::has_64_bits(generator.draw.type);
  if (function == Function::kBits) return !wide;
  return wide || function != Function::kBits64;
}

int draw_into(void* generator, Function function, void* to, size_t count, double a = 0, double b = 0) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (!has(*of, function)) return Outcome::kTypeError;
    if (count == 0) return Outcome::kSuccess;
    if (!to) return Outcome::kOutOfRange;
    if (count % of->draw.dimensions != 0) return Outcome::kLengthNotMultiple;
    of->draw.output = reinterpret_cast<uint64_t>(to);
    of->draw.count = count;
    of->draw.a = a, of->draw.b = b;
    return generate(of, function);
  });
}

// In pairs: the generators that NVIDIA's library refuses odd counts of.
int draw_normal_into(void* generator, Function function, void* to, size_t count, double mean, double deviation) {
  const auto* const known = static_cast<const Handle*>(generator);
  if (known && known->mark == Handle::kMark && count % 2 != 0 && known->generator->draw.type < kMtgp32)
    return static_cast<int>(Outcome::kLengthNotMultiple);
  return draw_into(generator, function, to, count, mean, deviation);
}

}  // namespace

HEDDLE_LIBRARY_EXPORT int curandCreateGenerator(void** generator, int type) {
  return answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    int device, capability;
    if (!runtime || runtime->current_device(&device, &capability) != 0) return Outcome::kNotInitialized;
    return create(generator, type, runtime, false);
  });
}

HEDDLE_LIBRARY_EXPORT int curandCreateGeneratorHost(void** generator, int type) {
  return answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    return create(generator, type, runtime && runtime->on_gpu() ? runtime : nullptr, true);
  });
}

HEDDLE_LIBRARY_EXPORT int curandDestroyGenerator(void* generator) {
  return answer([&] {
    auto* const known = static_cast<Handle*>(generator);
    if (!known || known->mark != Handle::kMark) return Outcome::kNotInitialized;
    known->mark = 0;
    delete known;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandGetVersion(int* version) {
  if (!version) return static_cast<int>(Outcome::kOutOfRange);
  *version = kVersion;
  return 0;
}

HEDDLE_LIBRARY_EXPORT int curandGetProperty(int property, int* value) {
  constexpr int kParts[] = {kVersion / 1000, kVersion / 100 % 10, kVersion % 100};
  if (!value || property < 0 || property > 2) return static_cast<int>(Outcome::kOutOfRange);
  *value = kParts[property];
  return 0;
}

HEDDLE_LIBRARY_EXPORT int curandSetStream(void* generator, void* stream) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    of->stream = stream;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetPseudoRandomGeneratorSeed(void* generator, unsigned long long seed) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (of->quasi()) return Outcome::kTypeError;
    of->draw.seed = seed;
    of->restart();
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetGeneratorOffset(void* generator, unsigned long long offset) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (of->draw.type == kMtgp32 || of->draw.type == kMt19937) return Outcome::kTypeError;
    of->draw.offset = offset;
    of->restart();
    return Outcome::kSuccess;
  });
}

// Taken note of for GPUs: the numbers of a software device have one order.
HEDDLE_LIBRARY_EXPORT int curandSetGeneratorOrdering(void* generator, int ordering) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    const bool fits = of->quasi() ? ordering == 201 : ordering >= 100 && ordering <= 104;
    if (!fits) return Outcome::kOutOfRange;
    of->draw.ordering = ordering;
    of->restart();
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetQuasiRandomGeneratorDimensions(void* generator, unsigned dimensions) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (!of->quasi()) return Outcome::kTypeError;
    if (dimensions == 0 || dimensions > library::curand::kMostDimensions) return Outcome::kOutOfRange;
    of->draw.dimensions = dimensions;
    of->restart();
    return Outcome::kSuccess;
  });
}

// What NVIDIA's library may do before the first numbers, done with them here.
HEDDLE_LIBRARY_EXPORT int curandGenerateSeeds(void* generator) {
  return on_generator(generator, [](const std::shared_ptr<Generator>&) { return Outcome::kSuccess; });
}

HEDDLE_LIBRARY_EXPORT int curandGenerate(void* generator, unsigned* to, size_t count) {
  return draw_into(generator, Function::kBits, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateLongLong(void* generator, unsigned long long* to, size_t count) {
  return draw_into(generator, Function::kBits64, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateUniform(void* generator, float* to, size_t count) {
  return draw_into(generator, Function::kUniform, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateUniformDouble(void* generator, double* to, size_t count) {
  return draw_into(generator, Function::kUniformDouble, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateNormal(void* generator, float* to, size_t count, float mean, float deviation) {
  return draw_normal_into(generator, Function::kNormal, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateNormalDouble(void* generator, double* to, size_t count, double mean,
                                                     double deviation) {
  return draw_normal_into(generator, Function::kNormalDouble, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateLogNormal(void* generator, float* to, size_t count, float mean,
                                                  float deviation) {
  return draw_normal_into(generator, Function::kLogNormal, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateLogNormalDouble(void* generator, double* to, size_t count, double mean,
                                                        double deviation) {
  return draw_normal_into(generator, Function::kLogNormalDouble, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGeneratePoisson(void* generator, unsigned* to, size_t count, double mean) {
  if (!(mean > 0) || mean > kLargestMean) return static_cast<int>(Outcome::kOutOfRange);
  return draw_into(generator, Function::kPoisson, to, count, mean);
}

// Of software devices all methods are one.
HEDDLE_LIBRARY_EXPORT int curandGeneratePoissonMethod(void* generator, unsigned* to, size_t count, double mean,
                                                      int method) {
  constexpr int kLastMethod = 13;  // CURAND_POISSON
  if (!(mean > 0) || mean > kLargestMean || method < 0 || method > kLastMethod)
    return static_cast<int>(Outcome::kOutOfRange);
  return draw_into(generator, Function::kPoissonMethod, to, count, mean, method);
}

}  // namespace heddle::client
