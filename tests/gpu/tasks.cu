// Many small tasks: each allocates, launches, waits and frees. Compiled by heddle cc each turn is a task with a probe;
// what a probe costs is the difference to the same program compiled by nvcc. One buffer lives all the time, so that
// heddle keeps the program's worker. Usage: tasks COUNT

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kNumbers = 1 << 18, kBlock = 256;

__global__ void add(float* to, const float* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + static_cast<float>(i);
}

bool turn(float* result) {
  float *from = nullptr, *to = nullptr;
  bool right = cudaMalloc(&from, kNumbers * sizeof(float)) == cudaSuccess &&
               cudaMalloc(&to, kNumbers * sizeof(float)) == cudaSuccess &&
               cudaMemset(from, 0, kNumbers * sizeof(float)) == cudaSuccess;
  if (right) {
    add<<<kNumbers / kBlock, kBlock>>>(to, from);
    right = cudaMemcpy(result, to + kNumbers - 1, sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess;
  }
  cudaFree(to);
  cudaFree(from);
  return right && *result == static_cast<float>(kNumbers - 1);
}

}  // namespace

int main(int count, char** words) {
  const int tasks = count > 1 ? std::atoi(words[1]) : 1000;
  float result = 0, *kept = nullptr;
  if (cudaMalloc(&kept, kNumbers * sizeof(float)) != cudaSuccess) return std::puts("tasks: FAIL"), 1;
  add<<<kNumbers / kBlock, kBlock>>>(kept, kept);
  if (!turn(&result)) return std::puts("tasks: FAIL"), 1;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < tasks; ++i) {
    if (!turn(&result)) return std::puts("tasks: FAIL"), 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  cudaFree(kept);
  std::printf("loops: tasks: %.6f s, %.3f us each, PASS\n", took.count(), 1e6 * took.count() / tasks);
}
