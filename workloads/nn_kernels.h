// The kernels of which the program nn makes its networks. A matrix of activations has a row a channel, and a column a
// pixel of an image: images side by side, so that a layer is one matrix product for the whole batch.
#pragma once

#include "common.h"

namespace workload {

constexpr int kNnTile = 16;
constexpr unsigned kNnThreads = 128;
constexpr float kLeak = 0.1f;  // what negative activations are multiplied by

// A matrix, or one seen as its transpose.
struct Operand {
  const float* data;
  size_t row_stride, column_stride;
};

inline Operand matrix(const float* data, size_t columns) {
  return {data, columns, 1};
}
inline Operand transposed(const float* data, size_t columns) {
  return {data, 1, columns};
}

// out (rows x columns, row-major) = a (rows x inner) * b (inner x columns). Blocks stride over the tiles of `out`.
__global__ void multiply(Operand a, Operand b, float* out, size_t rows, size_t inner, size_t columns) {
  __shared__ float tile_a[kNnTile][kNnTile], tile_b[kNnTile][kNnTile];
  const size_t tx = threadIdx.x, ty = threadIdx.y;
  const size_t across = (columns + kNnTile - 1) / kNnTile, tiles = across * ((rows + kNnTile - 1) / kNnTile);
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const size_t row = tile / across * kNnTile + ty, column = tile % across * kNnTile + tx;
    float sum = 0;
    for (size_t start = 0; start < inner; start += kNnTile) {
      const bool in_a = row < rows && start + tx < inner, in_b = start + ty < inner && column < columns;
      tile_a[ty][tx] = in_a ? a.data[row * a.row_stride + (start + tx) * a.column_stride] : 0.0f;
      tile_b[ty][tx] = in_b ? b.data[(start + ty) * b.row_stride + column * b.column_stride] : 0.0f;
      __syncthreads();
      for (int k = 0; k < kNnTile; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
      __syncthreads();
    }
    if (row < rows && column < columns) out[row * columns + column] = sum;
  }
}

// A convolution from images of in_side x in_side to such of out_side x out_side. A dense layer is one whose kernel is
// as large as its input.
struct Convolution {
  int in_channels, in_side, out_channels, kernel, stride, padding;

  __host__ __device__ int out_side() const { return (in_side + 2 * padding - kernel) / stride + 1; }
  __host__ __device__ size_t in_pixels() const { return static_cast<size_t>(in_side) * in_side; }
  __host__ __device__ size_t out_pixels() const { return static_cast<size_t>(out_side()) * out_side(); }
  __host__ __device__ size_t inner() const { return static_cast<size_t>(in_channels) * kernel * kernel; }
  size_t weights() const { return inner() * out_channels; }
};

__device__ inline size_t first_item() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline size_t item_stride() {
  return static_cast<size_t>(gridDim.x) * blockDim.x;
}

// Writes the pixels under the kernel one below the other, a column for each place of the kernel.
__global__ void unfold(const float* in, float* out, Convolution c, int batch) {
  const size_t columns = batch * c.out_pixels(), count = c.inner() * columns;
  for (size_t n = first_item(); n < count; n += item_stride()) {
    const size_t row = n / columns, column = n % columns, image = column / c.out_pixels();
    const int channel = row / (c.kernel * c.kernel), tap = row % (c.kernel * c.kernel), place = column % c.out_pixels();
    const int y = place / c.out_side() * c.stride - c.padding + tap / c.kernel;
    const int x = place % c.out_side() * c.stride - c.padding + tap % c.kernel;
    const bool inside = y >= 0 && y < c.in_side && x >= 0 && x < c.in_side;
    out[n] = inside ? in[(static_cast<size_t>(channel) * batch + image) * c.in_pixels() + y * c.in_side + x] : 0.0f;
  }
}

// The way back for gradients: each pixel's is the sum over all the places at which the kernel covers it.
__global__ void fold(const float* unfolded, float* out, Convolution c, int batch) {
  const size_t columns = batch * c.out_pixels(), count = c.in_channels * batch * c.in_pixels();
  for (size_t n = first_item(); n < count; n += item_stride()) {
    const size_t channel = n / (batch * c.in_pixels()), image = n / c.in_pixels() % batch;
    const int y = n % c.in_pixels() / c.in_side + c.padding, x = n % c.in_side + c.padding;
    float sum = 0;
    for (int tap = 0; tap < c.kernel * c.kernel; ++tap) {
      const int up = y - tap / c.kernel, left = x - tap % c.kernel;
      if (up < 0 || left < 0 || up % c.stride != 0 || left % c.stride != 0) continue;
      const int oy = up / c.stride, ox = left / c.stride;
      if (oy >= c.out_side() || ox >= c.out_side()) continue;
      const size_t row = channel * c.kernel * c.kernel + tap;
      sum += unfolded[row * columns + image * c.out_pixels() + oy * c.out_side() + ox];
    }
    out[n] = sum;
  }
}

__global__ void add_bias(float* values, const float* bias, size_t rows, size_t columns, bool leaky) {
  for (size_t n = first_item(); n < rows * columns; n += item_stride()) {
    const float value = values[n] + bias[n / columns];
    values[n] = leaky && value < 0 ? kLeak * value : value;
  }
}

// A row a class, a column an image: exponentials that add up to 1, less the greatest so that none overflows.
__global__ void softmax(float* values, size_t classes, size_t images) {
  for (size_t image = first_item(); image < images; image += item_stride()) {
    float greatest = values[image], sum = 0;
    for (size_t k = 1; k < classes; ++k) greatest = fmaxf(greatest, values[k * images + image]);
    for (size_t k = 0; k < classes; ++k)
      sum += values[k * images + image] = expf(values[k * images + image] - greatest);
    for (size_t k = 0; k < classes; ++k) values[k * images + image] /= sum;
  }
}

// --- Training ----------------------------------------------------------------------------------------------------

// The loss of each image, -log of its label's probability, and the mean loss' gradient before the softmax.
__global__ void measure_loss(const float* probabilities, const int* labels, float* gradient, float* losses,
                             size_t classes, size_t images) {
  for (size_t n = first_item(); n < classes * images; n += item_stride()) {
    const size_t image = n % images;
    const bool wanted = n / images == static_cast<size_t>(labels[image]);
    gradient[n] = (probabilities[n] - (wanted ? 1.0f : 0.0f)) / images;
    if (wanted) losses[image] = -logf(fmaxf(probabilities[n], 1e-30f));
  }
}

// Leaky units pass on what they let through.
__global__ void leak_back(const float* outputs, float* gradient, size_t count) {
  for (size_t n = first_item(); n < count; n += item_stride()) {
    if (outputs[n] < 0) gradient[n] *= kLeak;
  }
}

// out[row] = the sum of the row; a block a row.
__global__ void sum_rows(const float* values, float* out, size_t columns) {
  __shared__ float sums[kNnThreads];
  float sum = 0;
  for (size_t n = threadIdx.x; n < columns; n += kNnThreads) sum += values[blockIdx.x * columns + n];
  sums[threadIdx.x] = sum;
  for (unsigned half = kNnThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

__global__ void descend(float* values, const float* gradient, size_t count, float rate) {
  for (size_t n = first_item(); n < count; n += item_stride()) values[n] -= rate * gradient[n];
}

// --- Detection and text ------------------------------------------------------------------------------------------

// A box has kBoxFields rows and then one a class: where its middle is in its cell, its size, whether it is one.
constexpr int kBoxFields = 5;

__host__ __device__ inline float box_field(size_t field, float value) {
  const bool is_size = field == 2 || field == 3;
  return is_size ? expf(fminf(value, 8.0f)) : 1.0f / (1.0f + expf(-value));
}

__global__ void activate_boxes(float* values, size_t rows_a_box, size_t rows, size_t columns) {
  for (size_t n = first_item(); n < rows * columns; n += item_stride()) {
    values[n] = box_field(n / columns % rows_a_box, values[n]);
  }
}

// values (letters x texts): 1 in the row of each text's letter, else 0.
__global__ void write_letters(const int* letters, float* values, size_t alphabet, size_t texts) {
  for (size_t n = first_item(); n < alphabet * texts; n += item_stride()) {
    values[n] = n / texts == static_cast<size_t>(letters[n % texts]) ? 1.0f : 0.0f;
  }
}

// A layer's next state, of what comes from below and what comes from its last state.
__global__ void squash(const float* below, const float* before, const float* bias, float* state, size_t rows,
                       size_t texts) {
  for (size_t n = first_item(); n < rows * texts; n += item_stride()) {
    state[n] = tanhf(below[n] + before[n] + bias[n / texts]);
  }
}

// Draws each text's next letter by its probabilities.
__global__ void choose(const float* probabilities, int* letters, size_t alphabet, size_t texts, Random random) {
  for (size_t text = first_item(); text < texts; text += item_stride()) {
    const float drawn = random.unit(text);
    float sum = probabilities[text];
    size_t letter = 0;
    while (sum <= drawn && letter + 1 < alphabet) sum += probabilities[++letter * texts + text];
    letters[text] = static_cast<int>(letter);
  }
}

}  // namespace workload
