// montecarlo: fair prices of European call options as the mean over many random ends of the share's path.
// A block prices one option at a time; each launch adds further paths to the sums that stay on the device.
// Boyle: Options: a Monte Carlo approach, J. Financial Economics 4(3), 1977.
#include "option_pricing.h"
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 128;
constexpr float kRate = 0.06f;

// The number of a path from the standard normal distribution.
// Box, Muller: A note on the generation of random normal deviates, Annals of Mathematical Statistics 29(2), 1958.
__host__ __device__ inline float normal_number(const Random& random, unsigned long long path) {
  const unsigned long long bits = random.bits(path);
  const float radius = (static_cast<float>(bits >> 40) + 0.5f) * (1.0f / (1 << 24));
  const float angle = static_cast<float>(bits & 0xffffff) * (6.283185307f / (1 << 24));
  return sqrtf(-2.0f * logf(radius)) * cosf(angle);
}

// What the option pays at the end of one path: the share's price, grown by drift and chance, above the strike.
__host__ __device__ inline float payoff(float price, float strike, float drift, float spread, float normal) {
  const float end = price * expf(drift + spread * normal);
  return end > strike ? end - strike : 0.0f;
}

struct Sums {
  double payoffs, squares;
};

// sums[i] += the payoffs of option i on the paths `first` to first + paths - 1, and their squares. All options see the
// same paths.
__global__ void add_paths(const float* prices, const float* strikes, const float* years, Sums* sums, size_t count,
                          Random random, unsigned long long first, unsigned paths) {
  __shared__ Sums partial[kThreads];
  for (size_t i = blockIdx.x; i < count; i += gridDim.x) {
    const float price = prices[i], strike = strikes[i];
    const float drift = (kRate - 0.5f * kVolatility * kVolatility) * years[i];
    const float spread = kVolatility * sqrtf(years[i]);
    Sums mine{0, 0};
    for (unsigned path = threadIdx.x; path < paths; path += kThreads) {
      const double value = payoff(price, strike, drift, spread, normal_number(random, first + path));
      mine.payoffs += value;
      mine.squares += value * value;
    }
    partial[threadIdx.x] = mine;
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x >= half) continue;
      partial[threadIdx.x].payoffs += partial[threadIdx.x + half].payoffs;
      partial[threadIdx.x].squares += partial[threadIdx.x + half].squares;
    }
    if (threadIdx.x == 0) {
      sums[i].payoffs += partial[0].payoffs;
      sums[i].squares += partial[0].squares;
    }
    __syncthreads();
  }
}

struct MonteCarloOptions : CommonOptions {
  long long size = 64;
  long long paths = 1024;
};

size_t footprint(const MonteCarloOptions& options) {
  return options.size * (3 * sizeof(float) + sizeof(Sums));
}

class MonteCarlo {
 public:
  explicit MonteCarlo(const MonteCarloOptions& options)
      : o_(options),
        size_(o_.size),
        bytes_(size_ * sizeof(float)),
        chance_(Random(o_.seed).fork(0)),
        market_(size_, Random(o_.seed).fork(1)) {}

  int run() {
    for (float** array : {&prices_, &strikes_, &years_}) CUDA_CHECK(cudaMalloc(array, bytes_));
    CUDA_CHECK(cudaMalloc(&sums_, size_ * sizeof(Sums)));
    CUDA_CHECK(cudaMemcpy(prices_, market_.prices.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(strikes_, market_.strikes.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(years_, market_.years.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(sums_, 0, size_ * sizeof(Sums)));
    const unsigned grid = grid_size(size_, 1, o_.blocks);
    std::vector<Sums> sums(size_), before(size_);
    for (long long k = 0; k < o_.iterations; ++k) {
      if (o_.check == Check::kSample && k + 1 == o_.iterations) download(before);
      add_paths<<<grid, kThreads>>>(prices_, strikes_, years_, sums_, size_, chance_, k * o_.paths,
                                    static_cast<unsigned>(o_.paths));
      check_launch("add_paths");
    }
    download(sums);
    for (float* array : {prices_, strikes_, years_}) CUDA_CHECK(cudaFree(array));
    CUDA_CHECK(cudaFree(sums_));
    return check(sums, before);
  }

 private:
  void download(std::vector<Sums>& sums) const {
    CUDA_CHECK(cudaMemcpy(sums.data(), sums_, size_ * sizeof(Sums), cudaMemcpyDeviceToHost));
  }

  // Every price must lie near the closed formula's, and the sums be those of the same paths on the CPU: of all of them,
  // or of the last launch's, of which `before` is what was there when it began.
  int check(const std::vector<Sums>& sums, const std::vector<Sums>& before) const {
    constexpr size_t kSamples = 8;
    Verdict verdict(1e-4);
    if (o_.check != Check::kNone) {
      for (size_t i = 0; i < size_; ++i) verdict.require(i, is_near_formula(i, sums[i]));
    }
    if (o_.check == Check::kFull) {
      for (size_t i = 0; i < size_; ++i) compare(i, sums[i], 0, o_.iterations, verdict);
    }
    if (o_.check == Check::kSample) {
      for (size_t n = 0; n < kSamples; ++n) {
        const size_t i = Random(o_.seed).fork(2).below(size_, n);
        const Sums last{sums[i].payoffs - before[i].payoffs, sums[i].squares - before[i].squares};
        compare(i, last, o_.iterations - 1, o_.iterations, verdict);
      }
    }
    return verdict.report(o_.check, std::to_string(size_) + " options, " + std::to_string(o_.paths) + " paths, " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  // Within six standard errors of the mean, and a little for options that none of the paths lets pay.
  bool is_near_formula(size_t i, const Sums& sums) const {
    const double paths = static_cast<double>(o_.paths) * static_cast<double>(o_.iterations);
    const double mean = sums.payoffs / paths, variance = std::max(sums.squares / paths - mean * mean, 0.0);
    const double discount = std::exp(-kRate * market_.years[i]);
    const double expected = fair_price(market_.prices[i], market_.strikes[i], market_.years[i], kRate).call;
    return std::fabs(mean * discount - expected) <= discount * 6 * std::sqrt(variance / paths) + 10 / std::sqrt(paths);
  }

  void compare(size_t i, const Sums& got, uint64_t first_launch, uint64_t end_launch, Verdict& verdict) const {
    const float years = market_.years[i];
    const float drift = (kRate - 0.5f * kVolatility * kVolatility) * years, spread = kVolatility * std::sqrt(years);
    Sums expected{0, 0};
    for (uint64_t path = first_launch * o_.paths; path < end_launch * o_.paths; ++path) {
      const double value = payoff(market_.prices[i], market_.strikes[i], drift, spread, normal_number(chance_, path));
      expected.payoffs += value;
      expected.squares += value * value;
    }
    verdict.compare(2 * i, got.payoffs, expected.payoffs);
    verdict.compare(2 * i + 1, got.squares, expected.squares);
  }

  const MonteCarloOptions o_;
  const size_t size_, bytes_;
  const Random chance_;
  const Market market_;
  float *prices_ = nullptr, *strikes_ = nullptr, *years_ = nullptr;
  Sums* sums_ = nullptr;
};

int main(int argc, char** argv) {
  MonteCarloOptions job;
  job.iterations = 2;
  Options options("montecarlo",
                  "fair prices of European call options, by chance.\n"
                  "Device memory: 28 bytes an option.",
                  &job,
                  "what is compared with the same paths on the CPU, beside all prices with the closed formula's; "
                  "sample: 8 options, the last launch");
  options.number("--size", &job.size, 1, 1LL << 31, "options");
  options.number("--paths", &job.paths, 1, 1LL << 31, "random paths a launch, the same for all options");
  options.iterations(1LL << 31, "launches, each with further paths");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return MonteCarlo(job).run(); });
}
