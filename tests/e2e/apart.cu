// Two tasks that share nothing, on one device of the program: the second may run on another physical device. Both have
// memory and work when the program waits until the file named by the first argument is there.
//
// With -DVARIABLE their kernels meet in a variable of the module, with -DPINNED in host memory that the device sees:
// then they must stay together, and in order. With -DTIMED an event stands between them.

#include <unistd.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int kNumbers = 1 << 20;
constexpr int kBlock = 256;

#ifdef VARIABLE
__device__ int latest;
#endif

// numbers[i] <- numbers[i] * factor + i, `turns` times.
__global__ void first(float* numbers, float factor, int turns, int* seen) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float number = numbers[i];
  for (int turn = 0; turn < turns; ++turn) number = number * factor + static_cast<float>(i & 7);
  numbers[i] = number;
#ifdef VARIABLE
  if (i == 0) latest = 1;
#endif
#ifdef PINNED
  if (i == 0) seen[0] = 1;
#endif
}

__global__ void second(float* numbers, float factor, int turns, int* seen) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float number = numbers[i];
  for (int turn = 0; turn < turns; ++turn) number = number * factor - static_cast<float>(i & 3);
#ifdef VARIABLE
  if (latest != 1) number = -1;
#endif
#ifdef PINNED
  if (seen[0] != 1) number = -1;
#endif
  numbers[i] = number;
}

bool is_right(const std::vector<float>& numbers, float start, float factor, int turns, int mask, float sign) {
  for (int i = 0; i < kNumbers; ++i) {
    float number = start;
    for (int turn = 0; turn < turns; ++turn) number = number * factor + sign * static_cast<float>(i & mask);
    if (numbers[i] != number) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = kNumbers * sizeof(float);
  std::vector<float> one(kNumbers, 1), two(kNumbers, 2);
  int* seen = nullptr;
#ifdef PINNED
  if (cudaMallocHost(&seen, sizeof(int)) != cudaSuccess) return std::puts("FAIL: no pinned memory"), 1;
  seen[0] = 0;
#endif
#ifdef TIMED
  cudaEvent_t began, between, ended;
  cudaEventCreate(&began);
  cudaEventCreate(&between);
  cudaEventCreate(&ended);
#endif
  float *a = nullptr, *b = nullptr;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMemcpy(a, one.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b, two.data(), bytes, cudaMemcpyHostToDevice);
#ifdef TIMED
  cudaEventRecord(began);
#endif
  first<<<kNumbers / kBlock, kBlock>>>(a, 0.5f, 40, seen);
#ifdef TIMED
  cudaEventRecord(between);
#endif
  second<<<kNumbers / kBlock, kBlock>>>(b, 0.25f, 10, seen);
#ifdef TIMED
  cudaEventRecord(ended);
#endif
  while (argc > 1 && access(argv[1], F_OK) != 0) usleep(10000);
  cudaMemcpy(two.data(), b, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(one.data(), a, bytes, cudaMemcpyDeviceToHost);
  cudaFree(b);
  cudaFree(a);
  if (cudaDeviceSynchronize() != cudaSuccess) return std::puts("FAIL: an error"), 1;
#ifdef TIMED
  float before = 0, behind = 0, whole = 0;
  cudaEventElapsedTime(&before, began, between);
  cudaEventElapsedTime(&behind, between, ended);
  cudaEventElapsedTime(&whole, began, ended);
  if (!(before > 0 && behind > 0 && whole >= before)) return std::puts("FAIL: events out of order"), 1;
#endif
  const bool right = is_right(one, 1, 0.5f, 40, 7, 1) && is_right(two, 2, 0.25f, 10, 3, -1);
  std::puts(right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}
