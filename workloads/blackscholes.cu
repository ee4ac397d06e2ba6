// blackscholes: fair prices of European call and put options by the closed formula, once for each rate of interest.
// A streaming load: five arrays and some arithmetic on each element. Long and short jobs differ in launches only.
#include "option_pricing.h"
#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 128;

// Abramowitz, Stegun: Handbook of mathematical functions, 26.2.17; its error is below 7.5e-8.
__device__ float normal_distribution_of(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
  const float polynomial =
      k * (0.319381530f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.3989422804f * expf(-0.5f * x * x) * polynomial;
  return x > 0 ? 1.0f - tail : tail;
}

__global__ void price_options(const float* prices, const float* strikes, const float* years, float* calls, float* puts,
                              size_t count, float rate) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float price = prices[i], strike = strikes[i], time = years[i];
    const float spread = kVolatility * sqrtf(time);
    const float d1 = (logf(price / strike) + (rate + 0.5f * kVolatility * kVolatility) * time) / spread;
    const float above1 = normal_distribution_of(d1), above2 = normal_distribution_of(d1 - spread);
    const float discounted = strike * expf(-rate * time);
    calls[i] = price * above1 - discounted * above2;
    puts[i] = discounted * (1.0f - above2) - price * (1.0f - above1);
  }
}

struct BlackScholesOptions : CommonOptions {
  long long size = 1 << 16;
};

size_t footprint(const BlackScholesOptions& options) {
  return 5 * options.size * sizeof(float);
}

// From 1 % on, a tenth of a percent more each time, and from the start again.
float rate_of(long long iteration) {
  return 0.01f + 0.001f * static_cast<float>(iteration % 64);
}

class BlackScholes {
 public:
  explicit BlackScholes(const BlackScholesOptions& options)
      : o_(options), size_(o_.size), bytes_(size_ * sizeof(float)), market_(size_, Random(o_.seed)) {}

  int run() {
    for (float** array : {&prices_, &strikes_, &years_, &calls_, &puts_}) CUDA_CHECK(cudaMalloc(array, bytes_));
    CUDA_CHECK(cudaMemcpy(prices_, market_.prices.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(strikes_, market_.strikes.data(), bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(years_, market_.years.data(), bytes_, cudaMemcpyHostToDevice));
    const unsigned grid = grid_size(size_, kThreads, o_.blocks);
    for (long long k = 0; k < o_.iterations; ++k) {
      price_options<<<grid, kThreads>>>(prices_, strikes_, years_, calls_, puts_, size_, rate_of(k));
      check_launch("price_options");
    }
    std::vector<float> calls(size_), puts(size_);
    CUDA_CHECK(cudaMemcpy(calls.data(), calls_, bytes_, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(puts.data(), puts_, bytes_, cudaMemcpyDeviceToHost));
    for (float* array : {prices_, strikes_, years_, calls_, puts_}) CUDA_CHECK(cudaFree(array));
    return check(calls, puts);
  }

 private:
  int check(const std::vector<float>& calls, const std::vector<float>& puts) const {
    Verdict verdict(1e-5, 10.0);  // the prices that are subtracted are tens
    if (o_.check != Check::kNone) {
      const double rate = rate_of(o_.iterations - 1);
      for (size_t i = 0; i < size_; i += o_.check == Check::kSample ? 61 : 1) {
        const FairPrice expected = fair_price(market_.prices[i], market_.strikes[i], market_.years[i], rate);
        verdict.compare(i, calls[i], expected.call);
        verdict.compare(size_ + i, puts[i], expected.put);
      }
    }
    return verdict.report(o_.check,
                          std::to_string(size_) + " options, " + std::to_string(o_.iterations) + " iterations");
  }

  const BlackScholesOptions o_;
  const size_t size_, bytes_;
  const Market market_;
  float *prices_ = nullptr, *strikes_ = nullptr, *years_ = nullptr, *calls_ = nullptr, *puts_ = nullptr;
};

int main(int argc, char** argv) {
  BlackScholesOptions job;
  job.iterations = 2;
  Options options("blackscholes",
                  "fair prices of European options by the formula of Black and Scholes.\n"
                  "Device memory: 20 bytes an option.",
                  &job, "what is compared with the CPU's result; sample: every 61st option");
  options.number("--size", &job.size, 1, 1LL << 40, "options");
  options.iterations(1LL << 31, "launches, each at another rate of interest; the last one's prices are checked");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return BlackScholes(job).run(); });
}
