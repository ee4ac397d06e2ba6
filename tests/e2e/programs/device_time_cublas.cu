// Calls cuBLAS and launches nothing of its own.

#include <cublas_v2.h>

#include <cstdio>

int main() {
  const int n = 192;
  float *a, *b, *c;
  if (cudaMalloc(&a, n * n * sizeof(float)) != cudaSuccess || cudaMalloc(&b, n * n * sizeof(float)) != cudaSuccess ||
      cudaMalloc(&c, n * n * sizeof(float)) != cudaSuccess)
    return 1;
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) return 1;
  const float alpha = 1, beta = 0;
  for (int i = 0; i < 20; ++i) {
    if (cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, a, n, b, n, &beta, c, n) !=
        CUBLAS_STATUS_SUCCESS)
      return 1;
  }
  const cudaError_t done = cudaDeviceSynchronize();
  cublasDestroy(handle);
  std::printf(done == cudaSuccess ? "PASS\n" : "FAIL: %s\n", cudaGetErrorString(done));
  return done == cudaSuccess ? 0 : 1;
}
