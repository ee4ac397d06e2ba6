// cuRAND's quasi random generators, and what its device API takes from the host: points fill their parts evenly, the
// host's are the device's, kernels that are given the direction vectors draw the same; discrete distributions. Prints a
// line for each group, its name and a digest of the numbers, so that two runs on one GPU can be compared; then PASS.

#include <curand.h>
#include <curand_kernel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void expect(long got, long expected, const char* what, int line) {
  if (got == expected) return;
  std::printf("FAIL: %s (line %d): %ld, expected %ld\n", what, line, got, expected);
  std::exit(1);
}
#define OK(call) expect(static_cast<long>(call), 0, #call, __LINE__)
#define IS(call, expected) expect(static_cast<long>(call), static_cast<long>(expected), #call, __LINE__)
void near(double got, double expected, double tolerance, int line) {
  if (std::fabs(got - expected) <= tolerance) return;
  std::printf("FAIL: line %d: %g, expected %g\n", line, got, expected);
  std::exit(1);
}
#define NEAR(got, expected, tolerance) near(got, expected, tolerance, __LINE__)

uint64_t digest;
void take(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) digest = (digest ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ull;
}

constexpr unsigned kDimensions = 3;
constexpr size_t kPoints = 1024, kCount = kPoints * kDimensions;

template <class T>
struct Array {
  explicit Array(size_t count = kCount) : host(count) { OK(cudaMalloc(&device, count * sizeof(T))); }
  ~Array() { cudaFree(device); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  const std::vector<T>& fetch() {
    OK(cudaMemcpy(host.data(), device, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
    take(host.data(), host.size() * sizeof(T));
    return host;
  }
  std::vector<T> host;
  T* device = nullptr;
};

curandGenerator_t make(curandRngType_t type, bool on_host = false) {
  curandGenerator_t generator = nullptr;
  OK(on_host ? curandCreateGeneratorHost(&generator, type) : curandCreateGenerator(&generator, type));
  OK(curandSetQuasiRandomGeneratorDimensions(generator, kDimensions));
  OK(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT));
  return generator;
}

bool wide(curandRngType_t type) {
  return type == CURAND_RNG_QUASI_SOBOL64 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

// Of a dimension's points one lies in each part.
void fills(const double* points, int line) {
  std::vector<int> parts(kPoints);
  for (size_t i = 0; i < kPoints; ++i)
    ++parts[std::min(kPoints - 1, static_cast<size_t>(points[i] * static_cast<double>(kPoints)))];
  for (const int part : parts) expect(part, 1, "points in a part", line);
}

void sequence(curandRngType_t type) {
  const curandGenerator_t generator = make(type), host = make(type, true);
  Array<float> floats;
  Array<double> doubles;
  std::vector<float> here(kCount);
  OK(curandGenerateUniform(generator, floats.device, kCount));
  OK(curandGenerateUniform(host, here.data(), kCount));
  const auto first = floats.fetch();
  IS(first == here, true);
  // The next ones, and the first ones again.
  OK(curandGenerateUniform(generator, floats.device, kCount));
  IS(floats.fetch() == first, false);
  const auto second = floats.host;
  OK(curandSetGeneratorOffset(generator, 0));
  OK(curandGenerateUniform(generator, floats.device, kCount));
  IS(floats.fetch() == first, true);
  OK(curandSetGeneratorOffset(generator, kPoints));
  OK(curandGenerateUniform(generator, floats.device, kCount));
  IS(floats.fetch() == second, true);
  OK(curandSetGeneratorOffset(generator, 0));
  for (int times = 0; times < 2; ++times) {
    OK(curandGenerateUniformDouble(generator, doubles.device, kCount));
    doubles.fetch();
    for (unsigned i = 0; i < kDimensions; ++i) fills(&doubles.host[i * kPoints], __LINE__);
  }
  // Distributions.
  OK(curandSetGeneratorOffset(generator, 1));
  OK(curandGenerateNormalDouble(generator, doubles.device, kCount, 3, 2));
  double mean = 0;
  for (const double each : doubles.fetch()) mean += each / kCount;
  NEAR(mean, 3, 0.02);
  OK(curandGenerateLogNormal(generator, floats.device, kCount, 0, 0.5f));
  mean = 0;
  for (const float each : floats.fetch()) mean += each / kCount;
  NEAR(mean, std::exp(0.125), 0.02);
  Array<unsigned> bits;
  OK(curandGeneratePoisson(generator, bits.device, kCount, 12));
  mean = 0;
  for (const unsigned each : bits.fetch()) mean += each / static_cast<double>(kCount);
  NEAR(mean, 12, 0.1);
  Array<unsigned long long> longs;
  IS(curandGenerate(generator, bits.device, kCount), wide(type) ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_SUCCESS);
  IS(curandGenerateLongLong(generator, longs.device, kCount),
     wide(type) ? CURAND_STATUS_SUCCESS : CURAND_STATUS_TYPE_ERROR);
  if (wide(type)) longs.fetch();
  OK(curandDestroyGenerator(generator));
  OK(curandDestroyGenerator(host));
}

template <class State, class Vector, class Shift>
__global__ void draw(const Vector* vectors, const Shift* shifts, float* to) {
  const unsigned dimension = threadIdx.x;
  State state;
  if constexpr (std::is_same_v<State, curandStateSobol32_t> || std::is_same_v<State, curandStateSobol64_t>)
    curand_init(const_cast<Shift*>(vectors[dimension]), 0, &state);
  else
    curand_init(const_cast<Shift*>(vectors[dimension]), shifts[dimension], 0, &state);
  for (size_t i = 0; i < kPoints; ++i) to[dimension * kPoints + i] = curand_uniform(&state);
}

// Kernels that are given the vectors draw what the host API draws.
template <class State, class Vector, class Shift>
void on_device(curandRngType_t type, curandDirectionVectorSet_t set,
               curandStatus_t (*get)(Vector**, curandDirectionVectorSet_t), curandStatus_t (*get_shifts)(Shift**)) {
  Vector* vectors = nullptr;
  Shift* shifts = nullptr;
  OK(get(&vectors, set));
  OK(get_shifts(&shifts));
  Array<Shift> on_gpu(kDimensions * sizeof(Vector) / sizeof(Shift)), constants(kDimensions);
  OK(cudaMemcpy(on_gpu.device, vectors, kDimensions * sizeof(Vector), cudaMemcpyHostToDevice));
  OK(cudaMemcpy(constants.device, shifts, kDimensions * sizeof(Shift), cudaMemcpyHostToDevice));
  Array<float> drawn, expected;
  draw<State, Vector, Shift>
      <<<1, kDimensions>>>(reinterpret_cast<const Vector*>(on_gpu.device), constants.device, drawn.device);
  OK(cudaGetLastError());
  const curandGenerator_t generator = make(type);
  OK(curandGenerateUniform(generator, expected.device, kCount));
  const auto& wanted = expected.fetch();
  const auto& got = drawn.fetch();
  for (size_t i = 0; i < kCount; ++i) NEAR(got[i], wanted[i], 1e-6);
  OK(curandDestroyGenerator(generator));
}

__global__ void look_up(curandDiscreteDistribution_t distribution, unsigned* to, size_t each) {
  curandStatePhilox4_32_10_t state;
  curand_init(1234, threadIdx.x, 0, &state);
  for (size_t i = 0; i < each; ++i) to[threadIdx.x * each + i] = curand_discrete(&state, distribution);
}

void discrete(double expected) {
  curandDiscreteDistribution_t distribution;
  OK(curandCreatePoissonDistribution(expected, &distribution));
  const size_t each = 200, count = 32 * each;
  Array<unsigned> numbers(count);
  look_up<<<1, 32>>>(distribution, numbers.device, each);
  OK(cudaGetLastError());
  double mean = 0, variance = 0;
  for (const unsigned number : numbers.fetch()) mean += number / static_cast<double>(count);
  for (const unsigned number : numbers.host) variance += (number - mean) * (number - mean) / count;
  NEAR(mean, expected, 5 * std::sqrt(expected / count));
  NEAR(variance, expected, expected * 0.1);
  OK(curandDestroyDistribution(distribution));
}

void refusals() {
  curandGenerator_t generator = nullptr, pseudo = nullptr;
  IS(curandCreateGenerator(&generator, static_cast<curandRngType_t>(205)), CURAND_STATUS_TYPE_ERROR);
  generator = make(CURAND_RNG_QUASI_DEFAULT);
  Array<float> floats;
  IS(curandGenerateUniform(generator, floats.device, kCount - 1), CURAND_STATUS_LENGTH_NOT_MULTIPLE);
  IS(curandSetQuasiRandomGeneratorDimensions(generator, 0), CURAND_STATUS_OUT_OF_RANGE);
  IS(curandSetQuasiRandomGeneratorDimensions(generator, 20001), CURAND_STATUS_OUT_OF_RANGE);
  IS(curandSetPseudoRandomGeneratorSeed(generator, 1), CURAND_STATUS_TYPE_ERROR);
  OK(curandCreateGenerator(&pseudo, CURAND_RNG_PSEUDO_DEFAULT));
  IS(curandSetQuasiRandomGeneratorDimensions(pseudo, 2), CURAND_STATUS_TYPE_ERROR);
  OK(curandDestroyGenerator(generator));
  OK(curandDestroyGenerator(pseudo));
  curandDiscreteDistribution_t distribution;
  IS(curandCreatePoissonDistribution(-1, &distribution), CURAND_STATUS_OUT_OF_RANGE);
}

template <class Body>
void group(const char* name, Body body) {
  digest = 14695981039346656037ull;
  body();
  OK(cudaDeviceSynchronize());
  std::printf("%-22s %016llx\n", name, static_cast<unsigned long long>(digest));
}

}  // namespace

int main() {
  group("Sobol 32", [] { sequence(CURAND_RNG_QUASI_SOBOL32); });
  group("Sobol 32 scrambled", [] { sequence(CURAND_RNG_QUASI_SCRAMBLED_SOBOL32); });
  group("Sobol 64", [] { sequence(CURAND_RNG_QUASI_SOBOL64); });
  group("Sobol 64 scrambled", [] { sequence(CURAND_RNG_QUASI_SCRAMBLED_SOBOL64); });
  group("vectors", [] {
    on_device<curandStateSobol32_t>(CURAND_RNG_QUASI_SOBOL32, CURAND_DIRECTION_VECTORS_32_JOEKUO6,
                                    curandGetDirectionVectors32, curandGetScrambleConstants32);
    on_device<curandStateScrambledSobol32_t>(CURAND_RNG_QUASI_SCRAMBLED_SOBOL32,
                                             CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6, curandGetDirectionVectors32,
                                             curandGetScrambleConstants32);
    on_device<curandStateSobol64_t>(CURAND_RNG_QUASI_SOBOL64, CURAND_DIRECTION_VECTORS_64_JOEKUO6,
                                    curandGetDirectionVectors64, curandGetScrambleConstants64);
    on_device<curandStateScrambledSobol64_t>(CURAND_RNG_QUASI_SCRAMBLED_SOBOL64,
                                             CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6, curandGetDirectionVectors64,
                                             curandGetScrambleConstants64);
  });
  group("discrete", [] { discrete(7), discrete(900), discrete(5000); });
  refusals();
  std::printf("PASS\n");
  return 0;
}
