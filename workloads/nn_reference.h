// The networks of nn on the CPU, in doubles: convolutions straight from their definition, one image at a time.
#pragma once

#include "nn_network.h"

namespace workload {

using Values = std::vector<double>;

inline Values softmax_of(Values values) {
  const double greatest = *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - greatest);
  for (double& value : values) value /= sum;
  return values;
}

class ReferenceNetwork {
 public:
  ReferenceNetwork(const Shapes& shapes, const Random& random) {
    for (size_t l = 0; l < shapes.size(); ++l) {
      const Parameters start(shapes[l], random.fork(l));
      layers_.push_back(
          {shapes[l], {start.weights.begin(), start.weights.end()}, {start.bias.begin(), start.bias.end()}});
    }
  }

  // The device's weights as they are now.
  void adopt(const Network& network) {
    for (size_t l = 0; l < layers_.size(); ++l) {
      const auto weights = DeviceMemory::download(network.layers()[l].weights, layers_[l].weights.size());
      const auto bias = DeviceMemory::download(network.layers()[l].bias, layers_[l].bias.size());
      layers_[l].weights.assign(weights.begin(), weights.end());
      layers_[l].bias.assign(bias.begin(), bias.end());
    }
  }

  void compare(const Network& network, Verdict& verdict) const {
    for (size_t l = 0; l < layers_.size(); ++l) {
      const auto weights = DeviceMemory::download(network.layers()[l].weights, layers_[l].weights.size());
      const auto bias = DeviceMemory::download(network.layers()[l].bias, layers_[l].bias.size());
      for (size_t i = 0; i < weights.size(); ++i) verdict.compare(i, weights[i], layers_[l].weights[i]);
      for (size_t i = 0; i < bias.size(); ++i) verdict.compare(i, bias[i], layers_[l].bias[i]);
    }
  }

  // The last layer's outputs for one image.
  Values forward(const std::vector<float>& image) const { return activations(image).back(); }

  // A step of the descent over a batch.
  void train(const std::vector<std::vector<float>>& images, const std::vector<int>& labels, double rate) {
    std::vector<Layer> gradients = layers_;
    for (Layer& layer : gradients) {
      std::fill(layer.weights.begin(), layer.weights.end(), 0.0);
      std::fill(layer.bias.begin(), layer.bias.end(), 0.0);
    }
    for (size_t n = 0; n < images.size(); ++n) {
      const std::vector<Values> values = activations(images[n]);
      Values gradient = softmax_of(values.back());
      gradient[labels[n]] -= 1;
      for (double& value : gradient) value /= static_cast<double>(images.size());
      for (size_t l = layers_.size(); l-- > 0;) gradient = backward(l, values, gradient, gradients[l]);
    }
    for (size_t l = 0; l < layers_.size(); ++l) {
      for (size_t i = 0; i < layers_[l].weights.size(); ++i) layers_[l].weights[i] -= rate * gradients[l].weights[i];
      for (size_t i = 0; i < layers_[l].bias.size(); ++i) layers_[l].bias[i] -= rate * gradients[l].bias[i];
    }
  }

 private:
  struct Layer {
    Convolution shape;
    Values weights, bias;
  };

  // Calls visit(weight's index, input's index, output's index) for every product of the convolution.
  template <class Visit>
  static void each_product(const Convolution& c, Visit visit) {
    const int taps = c.kernel * c.kernel, side = c.out_side();
    for (int to = 0; to < c.out_channels; ++to) {
      for (int from = 0; from < c.in_channels; ++from) {
        for (int place = 0; place < side * side; ++place) {
          const int top = place / side * c.stride - c.padding, left = place % side * c.stride - c.padding;
          for (int tap = 0; tap < taps; ++tap) {
            const int y = top + tap / c.kernel, x = left + tap % c.kernel;
            if (y < 0 || y >= c.in_side || x < 0 || x >= c.in_side) continue;
            visit((static_cast<size_t>(to) * c.in_channels + from) * taps + tap,
                  (static_cast<size_t>(from) * c.in_side + y) * c.in_side + x, to * c.out_pixels() + place);
          }
        }
      }
    }
  }

  // The image, and what each layer makes of it.
  std::vector<Values> activations(const std::vector<float>& image) const {
    std::vector<Values> all{Values(image.begin(), image.end())};
    for (const Layer& layer : layers_) {
      const Convolution& c = layer.shape;
      Values out(c.out_channels * c.out_pixels());
      for (size_t i = 0; i < out.size(); ++i) out[i] = layer.bias[i / c.out_pixels()];
      const Values& in = all.back();
      each_product(c, [&](size_t w, size_t from, size_t to) { out[to] += layer.weights[w] * in[from]; });
      if (&layer != &layers_.back()) {
        for (double& value : out) value = value < 0 ? kLeak * value : value;
      }
      all.push_back(std::move(out));
    }
    return all;
  }

  // Adds to `sum`, and returns the gradient of the layer's input.
  Values backward(size_t l, const std::vector<Values>& values, Values gradient, Layer& sum) const {
    const Convolution& c = layers_[l].shape;
    const Values &in = values[l], &out = values[l + 1];
    for (size_t i = 0; i < gradient.size(); ++i) {
      if (l + 1 < layers_.size() && out[i] < 0) gradient[i] *= kLeak;
      sum.bias[i / c.out_pixels()] += gradient[i];
    }
    Values in_gradient(in.size());
    each_product(c, [&](size_t w, size_t from, size_t to) {
      sum.weights[w] += gradient[to] * in[from];
      in_gradient[from] += gradient[to] * layers_[l].weights[w];
    });
    return in_gradient;
  }

  std::vector<Layer> layers_;
};

}  // namespace workload
