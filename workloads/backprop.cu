// backprop: training steps of a perceptron with one hidden layer and one output.
// The wide layer's products and its weights' adjustment run on the device; the few hidden units, the output and the
// errors are handled by the host in between, so every step copies back and forth.
// Rumelhart, Hinton, Williams: Learning representations by back-propagating errors, Nature 323, 1986.
#include "options.h"

using namespace workload;

constexpr int kTile = 16;  // a block works on 16 inputs x 16 hidden units at a time
constexpr float kOutputRate = 0.3f, kMomentum = 0.3f;

// partial[block * hidden + j] = this block's share of sum over i of inputs[i] * weights[i * hidden + j].
__global__ void forward_layer(const float* inputs, const float* weights, float* partial, size_t count, int hidden) {
  __shared__ float products[kTile][kTile];
  const int j = blockIdx.y * kTile + threadIdx.x;
  float sum = 0;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kTile + threadIdx.y; i < count;
       i += static_cast<size_t>(gridDim.x) * kTile) {
    if (j < hidden) sum += inputs[i] * weights[i * hidden + j];
  }
  products[threadIdx.y][threadIdx.x] = sum;
  for (int half = kTile / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) products[threadIdx.y][threadIdx.x] += products[threadIdx.y + half][threadIdx.x];
  }
  if (threadIdx.y == 0 && j < hidden) partial[static_cast<size_t>(blockIdx.x) * hidden + j] = products[0][threadIdx.x];
}

// Each weight changes by rate * delta * input plus a share of its previous change.
__global__ void adjust_weights(const float* inputs, const float* deltas, float* weights, float* changes, size_t count,
                               int hidden, float rate) {
  const int j = blockIdx.y * kTile + threadIdx.x;
  if (j >= hidden) return;
  for (size_t i = static_cast<size_t>(blockIdx.x) * kTile + threadIdx.y; i < count;
       i += static_cast<size_t>(gridDim.x) * kTile) {
    const float change = rate * deltas[j] * inputs[i] + kMomentum * changes[i * hidden + j];
    weights[i * hidden + j] += change;
    changes[i * hidden + j] = change;
  }
}

struct BackpropOptions : CommonOptions {
  long long inputs = 1 << 15;
  long long hidden = 16;
  unsigned grid() const { return grid_size(inputs, kTile, blocks); }
};

size_t footprint(const BackpropOptions& o) {
  const size_t per_input = 1 + 2 * o.hidden, per_unit = o.grid() + 1;
  return (o.inputs * per_input + o.hidden * per_unit) * sizeof(float);
}

float squash(double x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
}

// The host's half of a step, the same for device and reference: from the hidden units' sums to their deltas.
class OutputLayer {
 public:
  OutputLayer(size_t hidden, const Random& random) : weights_(hidden), changes_(hidden), random_(random) {
    for (size_t j = 0; j < hidden; ++j) weights_[j] = random.symmetric(j);
  }

  std::vector<float> step(const std::vector<double>& sums, long long step) {
    std::vector<float> units(sums.size()), deltas(sums.size());
    double total = 0;
    for (size_t j = 0; j < sums.size(); ++j) {
      units[j] = squash(sums[j]);
      total += units[j] * weights_[j];
    }
    const float output = squash(total), target = 0.1f + 0.8f * random_.unit(sums.size() + step);
    const float output_delta = output * (1 - output) * (target - output);
    for (size_t j = 0; j < sums.size(); ++j) {
      deltas[j] = units[j] * (1 - units[j]) * output_delta * weights_[j];
      changes_[j] = kOutputRate * output_delta * units[j] + kMomentum * changes_[j];
      weights_[j] += changes_[j];
    }
    return deltas;
  }

 private:
  std::vector<float> weights_, changes_;
  Random random_;
};

struct Network {
  std::vector<float> weights, changes;
  OutputLayer output;
};

std::vector<float> make_pattern(size_t count, const Random& random) {
  std::vector<float> pattern(count);
  for (size_t i = 0; i < count; ++i) pattern[i] = random.symmetric(i);
  return pattern;
}

void reference_step(Network& network, const std::vector<float>& pattern, size_t hidden, float rate, long long step) {
  std::vector<double> sums(hidden);
  for (size_t i = 0; i < pattern.size(); ++i) {
    const float* row = &network.weights[i * hidden];
    for (size_t j = 0; j < hidden; ++j) sums[j] += pattern[i] * row[j];
  }
  const std::vector<float> deltas = network.output.step(sums, step);
  for (size_t i = 0; i < pattern.size(); ++i) {
    float* row = &network.weights[i * hidden];
    float* changes = &network.changes[i * hidden];
    for (size_t j = 0; j < hidden; ++j) {
      changes[j] = rate * deltas[j] * pattern[i] + kMomentum * changes[j];
      row[j] += changes[j];
    }
  }
}

class Backprop {
 public:
  explicit Backprop(const BackpropOptions& options)
      : o_(options),
        inputs_(o_.inputs),
        hidden_(o_.hidden),
        weight_bytes_(inputs_ * hidden_ * sizeof(float)),
        rate_(1.0f / std::sqrt(static_cast<float>(inputs_))),
        random_(o_.seed),
        output_(hidden_, random_.fork(1)),
        reference_{make_weights(), std::vector<float>(inputs_ * hidden_), output_} {}

  int run() {
    allocate();
    for (long long k = 0; k < o_.iterations; ++k) {
      const std::vector<float> pattern = make_pattern(inputs_, random_.fork(100 + k));
      const bool last = k + 1 == o_.iterations;
      if (o_.check == Check::kSample && last) restart_reference();
      if (o_.check == Check::kFull || (o_.check == Check::kSample && last)) {
        reference_step(reference_, pattern, hidden_, rate_, k);
      }
      device_step(pattern, k);
      wait_and_pause(o_);
    }
    std::vector<float> weights(inputs_ * hidden_);
    CUDA_CHECK(cudaMemcpy(weights.data(), weights_, weight_bytes_, cudaMemcpyDeviceToHost));
    release();

    Verdict verdict(1e-4, rate_);
    if (o_.check != Check::kNone) {
      for (size_t i = 0; i < weights.size(); ++i) verdict.compare(i, weights[i], reference_.weights[i]);
    }
    return verdict.report(o_.check, std::to_string(inputs_) + " inputs, " + std::to_string(hidden_) +
                                        " hidden units, " + std::to_string(o_.iterations) + " iterations");
  }

 private:
  std::vector<float> make_weights() const {
    const Random random = random_.fork(2);
    std::vector<float> weights(inputs_ * hidden_);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = rate_ * random.symmetric(i);
    return weights;
  }

  void allocate() {
    CUDA_CHECK(cudaMalloc(&pattern_, inputs_ * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&weights_, weight_bytes_));
    CUDA_CHECK(cudaMalloc(&changes_, weight_bytes_));
    CUDA_CHECK(cudaMalloc(&partial_, o_.grid() * hidden_ * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&deltas_, hidden_ * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(weights_, reference_.weights.data(), weight_bytes_, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(changes_, 0, weight_bytes_));
  }

  void release() {
    for (float* buffer : {pattern_, weights_, changes_, partial_, deltas_}) CUDA_CHECK(cudaFree(buffer));
  }

  void device_step(const std::vector<float>& pattern, long long step) {
    const dim3 grid(o_.grid(), ceil_div(hidden_, kTile)), threads(kTile, kTile);
    CUDA_CHECK(cudaMemcpy(pattern_, pattern.data(), inputs_ * sizeof(float), cudaMemcpyHostToDevice));
    forward_layer<<<grid, threads>>>(pattern_, weights_, partial_, inputs_, hidden_);
    check_launch("forward_layer");
    const std::vector<float> deltas = output_.step(collect_sums(), step);
    CUDA_CHECK(cudaMemcpy(deltas_, deltas.data(), hidden_ * sizeof(float), cudaMemcpyHostToDevice));
    adjust_weights<<<grid, threads>>>(pattern_, deltas_, weights_, changes_, inputs_, hidden_, rate_);
    check_launch("adjust_weights");
  }

  std::vector<double> collect_sums() {
    std::vector<float> partial(o_.grid() * hidden_);
    CUDA_CHECK(cudaMemcpy(partial.data(), partial_, partial.size() * sizeof(float), cudaMemcpyDeviceToHost));
    std::vector<double> sums(hidden_);
    for (size_t i = 0; i < partial.size(); ++i) sums[i % hidden_] += partial[i];
    return sums;
  }

  // Takes over the device's state, so that only what comes after it is recomputed.
  void restart_reference() {
    CUDA_CHECK(cudaMemcpy(reference_.weights.data(), weights_, weight_bytes_, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(reference_.changes.data(), changes_, weight_bytes_, cudaMemcpyDeviceToHost));
    reference_.output = output_;
  }

  const BackpropOptions o_;
  const size_t inputs_, hidden_, weight_bytes_;
  // Size of the wide layer's initial weights, and its learning rate: both fall with its width, so that its sums stay
  // where the sigmoid is not flat, and yet every step moves a weight by much more than rounding does.
  const float rate_;
  const Random random_;
  OutputLayer output_;
  Network reference_;
  float *pattern_ = nullptr, *weights_ = nullptr, *changes_ = nullptr, *partial_ = nullptr, *deltas_ = nullptr;
};

int main(int argc, char** argv) {
  BackpropOptions job;
  job.iterations = 10;
  Options options("backprop",
                  "trains a perceptron with one wide hidden layer, a new pattern each step.\n"
                  "Device memory: about 4 + 8 * hidden bytes an input, and 4 * hidden for each 16 inputs.",
                  &job, "what is compared with the CPU's result; sample: the last step only");
  options.number("--inputs", &job.inputs, 1, 1LL << 32, "input units");
  options.number("--hidden", &job.hidden, 1, 1024, "hidden units");
  options.iterations(1 << 20, "training steps");
  options.gap("milliseconds on the host behind each iteration, as where the data is larger");
  options.blocks();
  options.parse(argc, argv);
  return run_or_print(job, footprint(job), [&] { return Backprop(job).run(); });
}
