// Separately compiled device code without machine code for any device: nvcc's linker leaves the linking to whoever
// loads the program, and registers the units of its own device library with it.

#include <cstdio>

__device__ __noinline__ int twice(int x) {
  return 2 * x;
}

__global__ void fill(int* numbers) {
  numbers[threadIdx.x] = twice(static_cast<int>(threadIdx.x));
}

int main() {
  int* numbers = nullptr;
  int host[32];
  cudaMalloc(&numbers, sizeof(host));
  fill<<<1, 32>>>(numbers);
  const cudaError_t copied = cudaMemcpy(host, numbers, sizeof(host), cudaMemcpyDeviceToHost);
  cudaFree(numbers);
  if (copied != cudaSuccess) return std::printf("FAIL: %s\n", cudaGetErrorString(copied)), 1;
  for (int i = 0; i < 32; ++i) {
    if (host[i] != 2 * i) return std::printf("FAIL: %d stands at %d\n", host[i], i), 1;
  }
  std::puts("PASS");
  return 0;
}
