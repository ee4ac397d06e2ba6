// The program nn's networks of convolutions on the device: forward, and for training backward.
#pragma once

#include "nn_kernels.h"

namespace workload {

// Allocates device memory, or in a dry run only counts what would be allocated.
class DeviceMemory {
 public:
  explicit DeviceMemory(bool dry) : dry_(dry) {}

  template <class Value = float>
  Value* take(size_t count) {
    bytes_ += count * sizeof(Value);
    if (dry_) return nullptr;
    void* buffer;
    CUDA_CHECK(cudaMalloc(&buffer, count * sizeof(Value)));
    buffers_.push_back(buffer);
    return static_cast<Value*>(buffer);
  }

  bool dry() const { return dry_; }

  template <class Value>
  static void upload(Value* to, const std::vector<Value>& values) {
    CUDA_CHECK(cudaMemcpy(to, values.data(), values.size() * sizeof(Value), cudaMemcpyHostToDevice));
  }

  template <class Value = float>
  static std::vector<Value> download(const Value* from, size_t count) {
    std::vector<Value> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), from, count * sizeof(Value), cudaMemcpyDeviceToHost));
    return values;
  }

  void release() {
    for (void* buffer : buffers_) CUDA_CHECK(cudaFree(buffer));
    buffers_.clear();
  }

  size_t bytes() const { return bytes_; }

 private:
  const bool dry_;
  size_t bytes_ = 0;
  std::vector<void*> buffers_;
};

// The launches, each with at most so many blocks as the user allows (0: no limit).
struct Launcher {
  long long blocks;

  unsigned items(size_t count) const { return grid_size(count, kNnThreads, blocks); }

  void multiply(Operand a, Operand b, float* out, size_t rows, size_t inner, size_t columns) const {
    const size_t tiles = ceil_div(rows, kNnTile) * ceil_div(columns, kNnTile);
    workload::multiply<<<grid_size(tiles, 1, blocks), dim3(kNnTile, kNnTile)>>>(a, b, out, rows, inner, columns);
    check_launch("multiply");
  }

  void add_bias(float* values, const float* bias, size_t rows, size_t columns, bool leaky) const {
    workload::add_bias<<<items(rows * columns), kNnThreads>>>(values, bias, rows, columns, leaky);
    check_launch("add_bias");
  }

  void softmax(float* values, size_t classes, size_t images) const {
    workload::softmax<<<items(images), kNnThreads>>>(values, classes, images);
    check_launch("softmax");
  }
};

// A layer's numbers at the start: uniform, with the variance that keeps activations as large as they are.
// He, Zhang, Ren, Sun: Delving deep into rectifiers, ICCV 2015.
struct Parameters {
  std::vector<float> weights, bias;

  Parameters(const Convolution& c, const Random& random) : weights(c.weights()), bias(c.out_channels) {
    const float reach = std::sqrt(6.0f / static_cast<float>(c.inner()));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = reach * random.symmetric(i);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = 0.05f * random.symmetric(weights.size() + i);
  }
};

using Shapes = std::vector<Convolution>;

// All layers but the last are leaky; each halves the images' sides.
class Network {
 public:
  Network(const Shapes& shapes, int batch, bool trains, const Random& random, Launcher launcher, DeviceMemory& memory)
      : batch_(batch), launcher_(launcher) {
    size_t largest = 0;
    for (const Convolution& c : shapes) largest = std::max(largest, c.inner() * columns(c));
    float* shared = memory.take(largest);  // unfolded input: of each layer in turn, or its gradient
    input_ = memory.take(shapes[0].in_channels * batch * shapes[0].in_pixels());
    for (size_t l = 0; l < shapes.size(); ++l) {
      const Convolution& c = shapes[l];
      Layer layer{c};
      layer.weights = memory.take(c.weights());
      layer.bias = memory.take(c.out_channels);
      if (!memory.dry()) upload(Parameters(c, random.fork(l)), layer);
      layer.out = memory.take(outputs(c));
      layer.shared = shared;
      layer.unfolded = trains ? memory.take(c.inner() * columns(c)) : shared;
      if (trains) {
        layer.weight_gradient = memory.take(c.weights());
        layer.bias_gradient = memory.take(c.out_channels);
        layer.out_gradient = memory.take(outputs(c));
      }
      layers_.push_back(layer);
    }
  }

  struct Layer {
    Convolution shape;
    float *weights = nullptr, *bias = nullptr, *out = nullptr, *unfolded = nullptr, *shared = nullptr;
    float *weight_gradient = nullptr, *bias_gradient = nullptr, *out_gradient = nullptr;
  };

  float* input() const { return input_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& last() const { return layers_.back(); }
  size_t columns(const Convolution& c) const { return batch_ * c.out_pixels(); }
  size_t outputs(const Convolution& c) const { return c.out_channels * columns(c); }

  void forward() const {
    const float* in = input_;
    for (const Layer& layer : layers_) {
      const Convolution& c = layer.shape;
      unfold<<<launcher_.items(c.inner() * columns(c)), kNnThreads>>>(in, layer.unfolded, c, batch_);
      check_launch("unfold");
      launcher_.multiply(matrix(layer.weights, c.inner()), matrix(layer.unfolded, columns(c)), layer.out,
                         c.out_channels, c.inner(), columns(c));
      launcher_.add_bias(layer.out, layer.bias, c.out_channels, columns(c), &layer != &last());
      in = layer.out;
    }
  }

  // From the last layer's out_gradient to all weights', then a step of the descent.
  void backward(float rate) const {
    for (size_t l = layers_.size(); l-- > 0;) {
      const Layer& layer = layers_[l];
      const Convolution& c = layer.shape;
      if (&layer != &last()) {
        leak_back<<<launcher_.items(outputs(c)), kNnThreads>>>(layer.out, layer.out_gradient, outputs(c));
        check_launch("leak_back");
      }
      launcher_.multiply(matrix(layer.out_gradient, columns(c)), transposed(layer.unfolded, columns(c)),
                         layer.weight_gradient, c.out_channels, columns(c), c.inner());
      sum_rows<<<c.out_channels, kNnThreads>>>(layer.out_gradient, layer.bias_gradient, columns(c));
      check_launch("sum_rows");
      if (l > 0) pass_back(layer, layers_[l - 1].out_gradient);
      descend_along(layer.weights, layer.weight_gradient, c.weights(), rate);
      descend_along(layer.bias, layer.bias_gradient, c.out_channels, rate);
    }
  }

 private:
  static void upload(const Parameters& parameters, const Layer& layer) {
    DeviceMemory::upload(layer.weights, parameters.weights);
    DeviceMemory::upload(layer.bias, parameters.bias);
  }

  void pass_back(const Layer& layer, float* in_gradient) const {
    const Convolution& c = layer.shape;
    launcher_.multiply(transposed(layer.weights, c.inner()), matrix(layer.out_gradient, columns(c)), layer.shared,
                       c.inner(), c.out_channels, columns(c));
    fold<<<launcher_.items(c.in_channels * batch_ * c.in_pixels()), kNnThreads>>>(layer.shared, in_gradient, c, batch_);
    check_launch("fold");
  }

  void descend_along(float* values, const float* gradient, size_t count, float rate) const {
    descend<<<launcher_.items(count), kNnThreads>>>(values, gradient, count, rate);
    check_launch("descend");
  }

  const int batch_;
  const Launcher launcher_;
  float* input_ = nullptr;
  std::vector<Layer> layers_;
};

}  // namespace workload
