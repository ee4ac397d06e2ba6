// The parts that the two formulations of SRAD share: the speckled test image and the CPU reference.
// Yu, Acton: Speckle reducing anisotropic diffusion, IEEE Trans. Image Processing 11(11), 2002.
#pragma once

#include "common.h"

namespace workload {

// A chequered scene of two grey levels under uniform speckle; values in [0, 255].
inline std::vector<float> speckled_image(size_t rows, size_t columns, const Random& random) {
  constexpr size_t kSquare = 64;
  std::vector<float> image(rows * columns);
  for (size_t y = 0; y < rows; ++y) {
    for (size_t x = 0; x < columns; ++x) {
      const float base = ((x / kSquare + y / kSquare) & 1) != 0 ? 140.0f : 60.0f;
      image[y * columns + x] = base + 50.0f * random.symmetric(y * columns + x);
    }
  }
  return image;
}

// q0 squared: variance over squared mean of a region that counts as homogeneous speckle. It is a divisor, so an image
// that has become flat gets a small value in place of 0.
inline float speckle_scale(double sum, double sum_of_squares, double count) {
  const double mean = sum / count;
  return static_cast<float>(std::max((sum_of_squares / count - mean * mean) / (mean * mean), 1e-6));
}

// Of the upper left corner of `height` x `width` pixels.
inline float speckle_scale_of(const std::vector<float>& image, size_t columns, size_t height, size_t width) {
  double sum = 0, squares = 0;
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      const double value = image[y * columns + x];
      sum += value;
      squares += value * value;
    }
  }
  return speckle_scale(sum, squares, static_cast<double>(height) * static_cast<double>(width));
}

// The diffusion coefficient of a pixel from its value and the differences to its four neighbours.
__host__ __device__ inline float diffusion_coefficient(float value, float north, float south, float west, float east,
                                                       float q0_squared) {
  const float gradient = (north * north + south * south + west * west + east * east) / (value * value);
  const float laplacian = (north + south + west + east) / value;
  const float divisor = 1.0f + 0.25f * laplacian;
  const float q_squared = (0.5f * gradient - 0.0625f * laplacian * laplacian) / (divisor * divisor);
  const float coefficient = 1.0f / (1.0f + (q_squared - q0_squared) / (q0_squared * (1.0f + q0_squared)));
  return coefficient < 0.0f ? 0.0f : coefficient > 1.0f ? 1.0f : coefficient;
}

// One diffusion step on the CPU, with borders that mirror the edge pixel.
class SradReference {
 public:
  SradReference(size_t rows, size_t columns)
      : rows_(rows), columns_(columns), coefficient_(rows * columns), next_(rows * columns) {}

  void step(std::vector<float>& image, float lambda, float q0_squared) {
    for (size_t y = 0; y < rows_; ++y) {
      const float* here = &image[y * columns_];
      const float* above = y > 0 ? here - columns_ : here;
      const float* below = y + 1 < rows_ ? here + columns_ : here;
      float* out = &coefficient_[y * columns_];
      each_column([&](size_t x, size_t left, size_t right) {
        const float v = here[x];
        out[x] = diffusion_coefficient(v, above[x] - v, below[x] - v, here[left] - v, here[right] - v, q0_squared);
      });
    }
    for (size_t y = 0; y < rows_; ++y) {
      const size_t row = y * columns_;
      const size_t row_above = y > 0 ? row - columns_ : row;
      const size_t row_below = y + 1 < rows_ ? row + columns_ : row;
      each_column([&](size_t x, size_t left, size_t right) {
        const float v = image[row + x], c = coefficient_[row + x];
        const float flow = c * (image[row_above + x] - v) + coefficient_[row_below + x] * (image[row_below + x] - v) +
                           c * (image[row + left] - v) + coefficient_[row + right] * (image[row + right] - v);
        next_[row + x] = v + 0.25f * lambda * flow;
      });
    }
    image.swap(next_);
  }

 private:
  // The inner loop has no border cases, so that the compiler can vectorise it.
  template <class Pixel>
  void each_column(Pixel pixel) const {
    const size_t last = columns_ - 1;
    pixel(0, 0, std::min<size_t>(1, last));
    for (size_t x = 1; x < last; ++x) pixel(x, x - 1, x + 1);
    if (last > 0) pixel(last, last - 1, last);
  }

  size_t rows_, columns_;
  std::vector<float> coefficient_, next_;
};

}  // namespace workload
