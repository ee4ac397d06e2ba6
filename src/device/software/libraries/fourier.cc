#include "device/software/libraries/fourier.h"

#include <bit>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "library/cufft.h"

namespace heddle::software {
namespace {

using library::cufft::Function;
using library::cufft::Side;
using library::cufft::Transform;
using Number = std::complex<double>;
using Numbers = std::vector<Number>;

// e^(2 pi i part / whole)
Number root(uint64_t part, uint64_t whole) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(whole);
  return {std::cos(angle), std::sin(angle)};
}

// Transforms of one size and direction, and what they need again and again.
class Line {
 public:
  Line(uint64_t size, bool forward) : size_(size), padded_(std::has_single_bit(size) ? size : std::bit_ceil(2 * size)) {
    roots_.resize(padded_ / 2);
    for (uint64_t i = 0; i < roots_.size(); ++i) roots_[i] = std::conj(root(i, padded_));
    inverse_ = !forward;
    if (padded_ != size_) prepare_chirp();
  }
  // In place; not scaled, as cuFFT has it.
  void transform(Numbers& line) const {
    if (padded_ == size_) return powers_of_two(line, inverse_);
    by_convolution(line);
  }

 private:
  // Cooley and Tukey: bits reversed, then halves put together.
  void powers_of_two(Numbers& line, bool inverse) const {
    const uint64_t size = line.size();
    for (uint64_t i = 1, reversed = 0; i < size; ++i) {
      uint64_t bit = size >> 1;
      for (; reversed & bit; bit >>= 1) reversed ^= bit;
      reversed ^= bit;
      if (i < reversed) std::swap(line[i], line[reversed]);
    }
    for (uint64_t half = 1; half < size; half *= 2) {
      const uint64_t step = padded_ / (2 * half);
      for (uint64_t first = 0; first < size; first += 2 * half) {
        for (uint64_t i = 0; i < half; ++i) {
          const Number turn = inverse ? std::conj(roots_[i * step]) : roots_[i * step];
          const Number odd = line[first + half + i] * turn, even = line[first + i];
          line[first + i] = even + odd;
          line[first + half + i] = even - odd;
        }
      }
    }
  }

  // Bluestein: i k = (i i + k k - (k - i)(k - i)) / 2 makes the transform a convolution with a chirp.
  void prepare_chirp() {
    chirp_.resize(size_);
    kernel_.assign(padded_, 0);
    for (uint64_t i = 0; i < size_; ++i) {
      const Number turn = root(i * i % (2 * size_), 2 * size_);
      chirp_[i] = inverse_ ? turn : std::conj(turn);
      kernel_[i] = std::conj(chirp_[i]);
      if (i > 0) kernel_[padded_ - i] = kernel_[i];
    }
    powers_of_two(kernel_, false);
  }
  void by_convolution(Numbers& line) const {
    Numbers product(padded_);
    for (uint64_t i = 0; i < size_; ++i) product[i] = line[i] * chirp_[i];
    powers_of_two(product, false);
    for (uint64_t i = 0; i < padded_; ++i) product[i] *= kernel_[i];
    powers_of_two(product, true);
    for (uint64_t i = 0; i < size_; ++i) line[i] = product[i] * chirp_[i] / static_cast<double>(padded_);
  }

  const uint64_t size_, padded_;
  bool inverse_ = false;
  Numbers roots_;  // of the padded size, forward
  Numbers chirp_, kernel_;
};

// One transform's numbers, side by side.
struct Box {
  std::array<uint64_t, 3> size;
  Numbers numbers;

  explicit Box(const std::array<int64_t, 3>& of)
      : size{static_cast<uint64_t>(of[0]), static_cast<uint64_t>(of[1]), static_cast<uint64_t>(of[2])},
        numbers(size[0] * size[1] * size[2]) {}
  Number& at(uint64_t i, uint64_t j, uint64_t k) { return numbers[(i * size[1] + j) * size[2] + k]; }

  void transform(uint32_t dimension, const Line& line) {
    const uint64_t length = size[dimension];
    const uint64_t step = dimension == 2 ? 1 : dimension == 1 ? size[2] : size[1] * size[2];
    Numbers numbers_of_line(length);
    for (uint64_t first = 0; first < numbers.size(); ++first) {
      if (first / step % length != 0) continue;
      for (uint64_t i = 0; i < length; ++i) numbers_of_line[i] = numbers[first + i * step];
      line.transform(numbers_of_line);
      for (uint64_t i = 0; i < length; ++i) numbers[first + i * step] = numbers_of_line[i];
    }
  }
};

// Calls `body(i, j, k, index)` for each number that a side has of one transform.
template <class Body>
void for_each_number(const Transform& transform, const Side& side, int64_t which, Body&& body) {
  for (int64_t i = 0; i < transform.size[0]; ++i) {
    for (int64_t j = 0; j < transform.size[1]; ++j) {
      for (int64_t k = 0; k < side.last; ++k)
        body(static_cast<uint64_t>(i), static_cast<uint64_t>(j), static_cast<uint64_t>(k), side.at(which, i, j, k));
    }
  }
}

template <class Real>
class Executed {
 public:
  Executed(const Transform& transform, Function function)
      : transform_(transform),
        function_(function),
        in_(input_of(transform, function)),
        out_(output_of(transform, function)) {}

  void run() const {
    const bool forward = from_real(function_) || (!to_real(function_) && transform_.forward);
    std::vector<std::pair<uint32_t, Line>> lines;
    for (uint32_t dimension = 0; dimension < 3; ++dimension) {
      const int64_t size = transform_.size[dimension];
      if (size > 1) lines.emplace_back(dimension, Line(static_cast<uint64_t>(size), forward));
    }
    for (int64_t which = 0; which < transform_.batch; ++which) {
      Box box(transform_.size);
      load(box, which);
      for (const auto& [dimension, line] : lines) box.transform(dimension, line);
      store(box, which);
    }
  }

 private:
  template <class T>
  static T* pointer(uint64_t address) {
    return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
  }

  void load(Box& box, int64_t which) const {
    const auto* const reals = pointer<const Real>(transform_.input);
    const auto* const pairs = pointer<const std::complex<Real>>(transform_.input);
    for_each_number(transform_, in_, which, [&](uint64_t i, uint64_t j, uint64_t k, int64_t index) {
      box.at(i, j, k) = from_real(function_) ? Number(reals[index]) : Number(pairs[index]);
    });
    if (to_real(function_)) complete(box);
  }
  // What becomes real is the conjugate of itself, backwards: the input has half of it.
  void complete(Box& box) const {
    const auto& size = box.size;
    for (uint64_t i = 0; i < size[0]; ++i) {
      for (uint64_t j = 0; j < size[1]; ++j) {
        for (uint64_t k = size[2] / 2 + 1; k < size[2]; ++k)
          box.at(i, j, k) = std::conj(box.at((size[0] - i) % size[0], (size[1] - j) % size[1], size[2] - k));
      }
    }
  }
  void store(Box& box, int64_t which) const {
    auto* const reals = pointer<Real>(transform_.output);
    auto* const pairs = pointer<std::complex<Real>>(transform_.output);
    for_each_number(transform_, out_, which, [&](uint64_t i, uint64_t j, uint64_t k, int64_t index) {
      if (to_real(function_)) reals[index] = static_cast<Real>(box.at(i, j, k).real());
      if (!to_real(function_)) pairs[index] = std::complex<Real>(box.at(i, j, k));
    });
  }

  const Transform& transform_;
  const Function function_;
  const Side in_, out_;
};

}  // namespace

void run_cufft(const library::Call& call) {
  const auto transform = Transform::unpack(call.words);
  const auto function = static_cast<Function>(call.function);
  if (function == Function::kSize) {                                         // no work area is needed
    *reinterpret_cast<library::cufft::SizeAnswer*>(transform->output) = {};  // NOLINT(performance-no-int-to-ptr)
    return;
  }
  if (is_double(function)) return Executed<double>(*transform, function).run();
  Executed<float>(*transform, function).run();
}

}  // namespace heddle::software
