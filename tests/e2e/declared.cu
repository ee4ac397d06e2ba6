// A program whose second and third buffer come after its first launch: what heddle cc announces, nvcc's does not.
// Prints PASS, or what was wrong.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void fill(float* to, int count, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = value;
}

__global__ void add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1 << 20;
  const size_t bytes = count * sizeof(float);
  const int blocks = (count + 127) / 128;
  std::vector<float> result(count);
  float *a, *b, *c;
  cudaMalloc(&a, bytes);
  fill<<<blocks, 128>>>(a, count, 40.0f);
  cudaMalloc(&b, bytes);
  fill<<<blocks, 128>>>(b, count, 2.0f);
  cudaMalloc(&c, 2 * bytes);
  add<<<blocks, 128>>>(a, b, c, count);
  cudaMemcpy(result.data(), c, bytes, cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(b);
  const cudaError_t error = cudaFree(c);
  for (int i = 0; i < count; ++i) {
    if (result[i] != 42.0f) {
      std::printf("element %d is %f (%s)\n", i, result[i], cudaGetErrorString(error));
      return 2;
    }
  }
  std::printf("PASS\n");
  return 0;
}
