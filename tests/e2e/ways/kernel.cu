// One unit of a program that build.sh builds in every way there is; it calls a device function of another unit.

#include "program.h"

__device__ int doubled(int x);

__global__ void fill(int* numbers, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) numbers[i] = doubled(i);
}

extern "C" int compute(int n) {
  int* numbers;
  if (cudaMalloc(&numbers, n * sizeof(int)) != cudaSuccess) return -1;
  fill<<<(n + 63) / 64, 64>>>(numbers, n);
  int last = 0;
  cudaMemcpy(&last, numbers + n - 1, sizeof last, cudaMemcpyDeviceToHost);
  cudaFree(numbers);
  return last;
}
