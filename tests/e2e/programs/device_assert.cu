// Kernels whose assertions fail. Prints what the next waiting call answers.
#undef NDEBUG
#include <cassert>
#include <cstdio>

__global__ void fails(int zero) {
  assert(zero < 0);
}

int main() {
  fails<<<1, 1>>>(0);
  std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
