// As outlives.cu, with NVIDIA's libraries: random numbers go on where they were, and a product has its handle.
#include <cublas_v2.h>
#include <curand.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(call)                                               \
  do {                                                            \
    if (const int status = static_cast<int>(call); status != 0) { \
      std::printf("%s: %d (line %d)\n", #call, status, __LINE__); \
      return 1;                                                   \
    }                                                             \
  } while (false)

int main(int, char** arguments) {
  const std::string directory = arguments[1];
  const int steps = std::atoi(arguments[2]), n = 32;
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, n * n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * n * sizeof(float)));
  CHECK(cudaMalloc(&c, n * n * sizeof(float)));
  CHECK(cudaMemset(c, 0, n * n * sizeof(float)));
  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  CHECK(curandSetPseudoRandomGeneratorSeed(generator, 1234));
  CHECK(curandGenerateUniform(generator, a, n * n));
  cublasHandle_t handle;
  CHECK(cublasCreate(&handle));
  CHECK(cudaDeviceSynchronize());
  const float alpha = 0.5f, beta = 0.25f;
  for (int step = 1; step <= steps; ++step) {
    std::printf("step %d\n", step);
    std::fflush(stdout);
    while (access((directory + "/" + std::to_string(step)).c_str(), F_OK) != 0) usleep(2000);
    CHECK(curandGenerateUniform(generator, b, n * n));
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, a, n, b, n, &beta, c, n));
    float host[2];
    CHECK(cudaMemcpy(&host[0], b + 17, sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&host[1], c + 33, sizeof(float), cudaMemcpyDeviceToHost));
    std::printf("%.9g %.9g\n", host[0], host[1]);
  }
  std::printf("PASS\n");
  return 0;
}
