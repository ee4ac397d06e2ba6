// cuBLAS and cuRAND at their simplest: a product of random matrices, checked on the host.

#include <cublas_v2.h>
#include <curand.h>

#include <cmath>
#include <cstdio>
#include <vector>

#define CHECK(call)                                               \
  do {                                                            \
    if (const int status = static_cast<int>(call); status != 0) { \
      std::printf("%s: %d (line %d)\n", #call, status, __LINE__); \
      return 1;                                                   \
    }                                                             \
  } while (false)

__global__ void twice(float* numbers, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] *= 2;
}

int main() {
  const int m = 70, n = 50, k = 30;
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, m * k * sizeof(float)));
  CHECK(cudaMalloc(&b, k * n * sizeof(float)));
  CHECK(cudaMalloc(&c, m * n * sizeof(float)));
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  CHECK(curandGenerateUniform(generator, a, m * k));
  CHECK(curandGenerateUniform(generator, b, k * n));
  twice<<<(m * k + 127) / 128, 128>>>(a, m * k);
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle));
  const float alpha = 0.5f, beta = 0;
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, m, b, k, &beta, c, m));
  std::vector<float> host_a(m * k), host_b(k * n), host_c(m * n);
  CHECK(cudaMemcpy(host_a.data(), a, m * k * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host_b.data(), b, k * n * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cublasGetMatrix(m, n, sizeof(float), c, m, host_c.data(), m));
  double sum = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double expected = 0;
      for (int l = 0; l < k; ++l) expected += 0.5 * host_a[i + l * m] * host_b[l + j * k];
      if (std::fabs(expected - host_c[i + j * m]) > 1e-4) {
        std::printf("c(%d, %d) = %g, expected %g\n", i, j, host_c[i + j * m], expected);
        return 1;
      }
      sum += host_c[i + j * m];
    }
  }
  // Uniform numbers: half of each other's product on average, thirty of them, twice.
  if (std::fabs(sum / (m * n) - k / 4.0) > 0.5) {
    std::printf("a mean of %g\n", sum / (m * n));
    return 1;
  }
  CHECK(curandDestroyGenerator(generator));
  CHECK(cublasDestroy(handle));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  std::printf("PASS\n");
  return 0;
}
