// cudaDeviceSetLimit: what a stack, a heap and a print buffer of another size let a kernel do, and no more.
#include <cstdio>
#include <cstdlib>

#include "check.h"

__device__ __noinline__ int depth(int n) {
  volatile int room[16];
  room[n % 16] = n;
  return n == 0 ? 0 : depth(n - 1) + 1 + room[n % 16] - n;
}

__global__ void recurse(int n, int* out) {
  *out = depth(n);
}

__global__ void take(size_t bytes, int* out) {
  void* piece = malloc(bytes);
  *out = piece != nullptr;
  free(piece);
}

int main(int argc, char**) {
  int *out, result = 0;
  CHECK(cudaMalloc(&out, 4));
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));  // of all threads that the device holds: 4 GiB of an H100

  recurse<<<1, 1>>>(50, out);
  CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
  const bool deep = result == 50;

  take<<<1, 1>>>(20 << 20, out);
  CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
  const bool large = result == 1;
  take<<<1, 1>>>(40 << 20, out);
  CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
  const bool bounded = result == 0;
  const bool late = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20) == cudaErrorInvalidValue;
  cudaGetLastError();
  if (argc > 1) {  // deeper than the stack
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
    recurse<<<1, 1>>>(200, out);
    std::printf("limits: overflow is %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
  }
  std::printf("limits: %s\n", deep && large && bounded && late ? "PASS" : "FAIL");
  return deep && large && bounded && late ? 0 : 1;
}
