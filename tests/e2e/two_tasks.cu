// Two tasks that share nothing, each on a device of its own: both are under way at once. Each kernel waits, for as long
// as the other device may take to begin, until the host has seen the other's sign of life in pinned memory.

#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kNumbers = 1 << 16;

// The first thread says that the kernel runs, and goes on when it may.
__global__ void meet(float* numbers, int task, volatile int* here, volatile int* go) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) {
    here[task] = 1;
    while (*go == 0) {
    }
  }
  numbers[i] = static_cast<float>(i + task);
}

bool is_right(const std::vector<float>& numbers, int task) {
  for (int i = 0; i < kNumbers; ++i) {
    if (numbers[i] != static_cast<float>(i + task)) return false;
  }
  return true;
}

}  // namespace

int main() {
  int* flags = nullptr;  // here[0], here[1], go
  if (cudaMallocHost(&flags, 3 * sizeof(int)) != cudaSuccess) return std::puts("FAIL: no pinned memory"), 1;
  volatile int* const here = flags;
  here[0] = here[1] = here[2] = 0;
  std::vector<float> first(kNumbers), second(kNumbers);
  float *a = nullptr, *b = nullptr;

  cudaSetDevice(0);
  cudaMalloc(&a, kNumbers * sizeof(float));
  meet<<<kNumbers / 256, 256>>>(a, 0, flags, flags + 2);

  cudaSetDevice(1);
  cudaMalloc(&b, kNumbers * sizeof(float));
  meet<<<kNumbers / 256, 256>>>(b, 1, flags, flags + 2);

  for (int waited = 0; waited < 30000 && !(here[0] && here[1]); ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool met = here[0] && here[1];
  here[2] = 1;

  cudaMemcpy(second.data(), b, kNumbers * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(b);
  cudaSetDevice(0);
  cudaMemcpy(first.data(), a, kNumbers * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFreeHost(flags);
  if (!met) return std::puts("FAIL: the tasks were not under way at once"), 1;
  std::puts(is_right(first, 0) && is_right(second, 1) ? "PASS" : "FAIL");
  return 0;
}
