// episodes: bursts of launches with host time in between, on memory that is held all the while or for each burst alone:
// the load of a service that computes when it is asked to (Gemini's kernel bursts, Rain's GPU episodes, TReM's tasks).
#include <chrono>
#include <cmath>
#include <thread>

#include "options.h"

using namespace workload;

constexpr unsigned kThreads = 256;
constexpr unsigned kFactor = 1664525, kSummand = 1013904223;  // Numerical Recipes' generator

// `steps` steps of the generator on each value: arithmetic only, so the time is that of the steps.
__global__ void advance(unsigned* values, size_t count, unsigned steps) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    unsigned value = values[i];
    for (unsigned step = 0; step < steps; ++step) value = value * kFactor + kSummand;
    values[i] = value;
  }
}

// What so many steps do to any value: value * factor + summand.
struct Jump {
  unsigned factor = 1, summand = 0;
};

Jump jump_of(unsigned long long steps) {
  Jump jump, power{kFactor, kSummand};
  for (; steps > 0; steps /= 2) {
    if (steps % 2 == 1) jump = {jump.factor * power.factor, jump.summand * power.factor + power.summand};
    power = {power.factor * power.factor, power.summand * power.factor + power.summand};
  }
  return jump;
}

struct EpisodesOptions : CommonOptions {
  long long size = 1 << 16;
  long long launches = 10;
  long long steps = 100;
  std::string gaps = "equal";
  std::string memory = "held";
};

size_t footprint(const EpisodesOptions& options) {
  return options.size * sizeof(unsigned);
}

class Episodes {
 public:
  explicit Episodes(const EpisodesOptions& options)
      : options_(options), size_(options.size), random_(options.seed), verdict_(0), values_(size_) {}

  int run() {
    for (size_t i = 0; i < size_; ++i) values_[i] = static_cast<unsigned>(random_.bits(i));
    const bool holds = options_.memory == "held";
    if (holds) allocate();
    for (long long i = 0; i < options_.iterations; ++i) {
      pause(i);
      if (!holds) allocate();
      burst();
      if (!holds) release();
    }
    if (holds) release();
    check();
    return verdict_.report(options_.check, std::to_string(options_.iterations) + " bursts of " +
                                               std::to_string(options_.launches) + " launches");
  }

 private:
  size_t bytes() const { return size_ * sizeof(unsigned); }
  void allocate() {
    CUDA_CHECK(cudaMalloc(&device_, bytes()));
    CUDA_CHECK(cudaMemcpy(device_, values_.data(), bytes(), cudaMemcpyHostToDevice));
  }
  void release() {
    CUDA_CHECK(cudaMemcpy(values_.data(), device_, bytes(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device_));
  }

  // Random ones are exponentially distributed: with short bursts requests arrive as in a Poisson process.
  void pause(long long burst) const {
    const float uniform = random_.fork(1).unit(burst);
    const double factor = options_.gaps == "random" ? -std::log1p(-uniform) : 1.0;
    const std::chrono::duration<double, std::milli> gap(static_cast<double>(options_.gap) * factor);
    if (options_.gap > 0) std::this_thread::sleep_for(gap);
  }

  void burst() {
    const unsigned grid = grid_size(size_, kThreads, options_.blocks);
    for (long long i = 0; i < options_.launches; ++i) {
      advance<<<grid, kThreads>>>(device_, size_, static_cast<unsigned>(options_.steps));
      check_launch("advance");
    }
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void check() {
    if (options_.check == Check::kNone) return;
    const Jump jump =
        jump_of(static_cast<unsigned long long>(options_.iterations) * options_.launches * options_.steps);
    const size_t stride = options_.check == Check::kSample ? 61 : 1;
    for (size_t i = 0; i < size_; i += stride)
      verdict_.require(i, values_[i] == static_cast<unsigned>(random_.bits(i)) * jump.factor + jump.summand);
  }

  const EpisodesOptions options_;
  const size_t size_;
  const Random random_;
  Verdict verdict_;
  std::vector<unsigned> values_;
  unsigned* device_ = nullptr;
};

int main(int argc, char** argv) {
  EpisodesOptions job;
  job.gap = 10;
  Options options("episodes",
                  "computes in bursts, with time on the host in between.\n"
                  "Device memory: 4 bytes a value.",
                  &job, "what is compared with the CPU's result; sample: every 61st value");
  options.number("--size", &job.size, 1, 1LL << 40, "values");
  options.number("--launches", &job.launches, 1, 1 << 20, "of each burst, one behind the other");
  options.number("--steps", &job.steps, 0, 1LL << 31, "of a generator on each value, in each launch");
  options.gap("milliseconds on the host before each burst");
  options.choice("--gaps", &job.gaps, {"equal", "random"}, "each of that length, or of that length in the mean");
  options.choice("--memory", &job.memory, {"held", "released"}, "device memory between bursts");
  options.iterations(1 << 20, "bursts");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Episodes(job).run(); });
}
