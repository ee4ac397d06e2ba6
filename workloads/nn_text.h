// The program nn's recurrent network, which writes texts letter by letter: for each letter a few small launches and a
// copy to the host. Elman: Finding structure in time, Cognitive Science 14(2), 1990.
#pragma once

#include "nn_options.h"
#include "nn_reference.h"

namespace workload {

class TextNetwork {
 public:
  TextNetwork(const NnOptions& options, DeviceMemory& memory)
      : o_(options), launcher_{options.blocks}, random_(options.seed), texts_(o_.batch), letters_in_(o_.classes) {
    const size_t hidden = o_.hidden;
    letters_ = memory.take<int>(texts_);
    input_ = memory.take(letters_in_ * texts_);
    below_ = memory.take(hidden * texts_);
    before_ = memory.take(hidden * texts_);
    for (size_t l = 0; l < static_cast<size_t>(o_.layers); ++l) {
      const size_t width = l == 0 ? letters_in_ : hidden;
      layers_.push_back({width, draw(hidden * width, 3 * l, std::sqrt(3.0f / width), memory),
                         draw(hidden * hidden, 3 * l + 1, 1 / std::sqrt(static_cast<float>(hidden)), memory),
                         draw(hidden, 3 * l + 2, 0.1f, memory), memory.take(hidden * texts_)});
    }
    out_ = draw(letters_in_ * hidden, kOutStream, 4 / std::sqrt(static_cast<float>(hidden)), memory);
    out_bias_ = draw(letters_in_, kOutStream + 1, 0.1f, memory);
    probabilities_ = memory.take(letters_in_ * texts_);
  }

  // Writes o.iterations letters of each text.
  int run() {
    CUDA_CHECK(cudaMemset(letters_, 0, texts_ * sizeof(int)));
    for (const Layer& layer : layers_) CUDA_CHECK(cudaMemset(layer.state, 0, o_.hidden * texts_ * sizeof(float)));
    for (long long k = 0; k < o_.iterations; ++k) {
      pause(o_);
      step(k);
      written_.push_back(DeviceMemory::download(letters_, texts_));
    }
    return check(DeviceMemory::download(probabilities_, letters_in_ * texts_));
  }

 private:
  static constexpr uint64_t kOutStream = 1 << 20, kChanceStream = 1 << 21;

  // On the host and on the device.
  struct Numbers {
    std::vector<float> host;
    float* device = nullptr;
  };

  struct Layer {
    size_t width;  // of what comes from below
    Numbers in, back, bias;
    float* state;
  };

  // The reach of `back` keeps a state from echoing for ever, so that rounding errors die out too.
  Numbers draw(size_t count, uint64_t stream, float reach, DeviceMemory& memory) const {
    Numbers numbers{{}, memory.take(count)};
    if (memory.dry()) return numbers;
    const Random random = random_.fork(stream);
    numbers.host.resize(count);
    for (size_t i = 0; i < count; ++i) numbers.host[i] = reach * random.symmetric(i);
    DeviceMemory::upload(numbers.device, numbers.host);
    return numbers;
  }

  Random chance_of(long long step) const { return random_.fork(kChanceStream + step); }

  void step(long long k) const {
    const size_t hidden = o_.hidden;
    write_letters<<<launcher_.items(letters_in_ * texts_), kNnThreads>>>(letters_, input_, letters_in_, texts_);
    check_launch("write_letters");
    const float* in = input_;
    for (const Layer& layer : layers_) {
      launcher_.multiply(matrix(layer.in.device, layer.width), matrix(in, texts_), below_, hidden, layer.width, texts_);
      launcher_.multiply(matrix(layer.back.device, hidden), matrix(layer.state, texts_), before_, hidden, hidden,
                         texts_);
      squash<<<launcher_.items(hidden * texts_), kNnThreads>>>(below_, before_, layer.bias.device, layer.state, hidden,
                                                               texts_);
      check_launch("squash");
      in = layer.state;
    }
    launcher_.multiply(matrix(out_.device, hidden), matrix(in, texts_), probabilities_, letters_in_, hidden, texts_);
    launcher_.add_bias(probabilities_, out_bias_.device, letters_in_, texts_, false);
    launcher_.softmax(probabilities_, letters_in_, texts_);
    choose<<<launcher_.items(texts_), kNnThreads>>>(probabilities_, letters_, letters_in_, texts_, chance_of(k));
    check_launch("choose");
  }

  // The CPU reads the device's letters, and looks at each step whether what was drawn there chooses the next one.
  int check(const std::vector<float>& probabilities) const {
    Verdict verdict(1e-4);
    const size_t texts = o_.check == Check::kFull ? texts_ : o_.check == Check::kSample ? 1 : 0;
    for (size_t text = 0; text < texts; ++text) {
      std::vector<Values> states(layers_.size(), Values(o_.hidden));
      Values expected;
      int letter = 0;
      for (long long k = 0; k < o_.iterations; ++k) {
        expected = reference_step(states, letter);
        letter = written_[k][text];
        verdict.require(k, chooses(expected, letter, chance_of(k).unit(text)));
      }
      for (size_t n = 0; n < letters_in_; ++n) verdict.compare(n, probabilities[n * texts_ + text], expected[n]);
    }
    return verdict.report(o_.check, "generate, " + std::to_string(texts_) + " texts, " + std::to_string(o_.layers) +
                                        " layers of " + std::to_string(o_.hidden) + ", " +
                                        std::to_string(o_.iterations) + " iterations");
  }

  static bool chooses(const Values& probabilities, int letter, double drawn) {
    constexpr double kRounding = 1e-4;
    if (letter < 0 || static_cast<size_t>(letter) >= probabilities.size()) return false;
    double below = 0;
    for (int n = 0; n < letter; ++n) below += probabilities[n];
    return drawn >= below - kRounding && drawn <= below + probabilities[letter] + kRounding;
  }

  Values reference_step(std::vector<Values>& states, int letter) const {
    Values in(letters_in_);
    in[letter] = 1;
    for (size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      Values next(layer.bias.host.begin(), layer.bias.host.end());
      add_product(layer.in.host, in, next);
      add_product(layer.back.host, states[l], next);
      for (double& value : next) value = std::tanh(value);
      in = states[l] = next;
    }
    Values out(out_bias_.host.begin(), out_bias_.host.end());
    add_product(out_.host, in, out);
    return softmax_of(std::move(out));
  }

  static void add_product(const std::vector<float>& weights, const Values& in, Values& out) {
    for (size_t row = 0; row < out.size(); ++row) {
      for (size_t i = 0; i < in.size(); ++i) out[row] += weights[row * in.size() + i] * in[i];
    }
  }

  const NnOptions o_;
  const Launcher launcher_;
  const Random random_;
  const size_t texts_, letters_in_;
  std::vector<Layer> layers_;
  Numbers out_, out_bias_;
  int* letters_ = nullptr;
  float *input_ = nullptr, *below_ = nullptr, *before_ = nullptr, *probabilities_ = nullptr;
  std::vector<std::vector<int>> written_;  // of each step, each text's letter
};

}  // namespace workload
