#include "native_loops.h"

#include <bit>
#include <cstdint>

namespace heddle::bench {
namespace {

// Sums of `width` elements at a time, in the order of the kernels' trees, so that the compiler may add in parallel.
void sum_groups(const float* in, float* out, int n, int width) {
  for (int group = 0; group < n / width; ++group) {
    float part[256];
    for (int i = 0; i < width; ++i) part[i] = in[group * width + i];
    for (int half = width / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) part[i] += part[i + half];
    out[group] = part[0];
  }
}

}  // namespace

void native_dense(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    float y = 1;
    for (int step = 0; step < 64; ++step) y = y * in[i] + 0.5f;
    out[i] = y;
  }
}

void native_stream(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = in[i] * 2 + 1;
}

void native_barriers(const float* in, float* out, int n) {
  sum_groups(in, out, n, 256);
}

void native_shuffles(const float* in, float* out, int n) {
  sum_groups(in, out, n, 32);
}

void native_divergent(const float* in, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    float c = in[i] * 0.5f, x = 0, y = 0;
    int step = 0;
    while (step < 64 && x * x + y * y < 4) {
      float next = x * x - y * y + c - 1;
      y = 2 * x * y + 0.3f;
      x = next;
      ++step;
    }
    out[i] = static_cast<float>(step);
  }
}

void native_atomics(const float* in, float* out, int n) {
  auto* counts = reinterpret_cast<int32_t*>(out);
  for (int i = 0; i < n; ++i) ++counts[std::bit_cast<int32_t>(in[i]) >> 12 & 255];
}

void native_tiles(const float* in, float* out, int) {
  constexpr int kSize = 256;
  for (int row = 0; row < kSize; ++row) {
    float* sums = out + row * kSize;
    for (int column = 0; column < kSize; ++column) sums[column] = 0;
    for (int k = 0; k < kSize; ++k)
      for (int column = 0; column < kSize; ++column) sums[column] += in[row * kSize + k] * in[k * kSize + column];
  }
}

}  // namespace heddle::bench
