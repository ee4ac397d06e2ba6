// A probe that promises too much in one place and too little in another: of two buffers one is taken, and the other's
// memory goes back before the task's end; a third comes that the compiler could not see. Then waits until the file
// named by the first argument is there. Prints PASS, or what was wrong.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kNumbers = 1 << 20;

__global__ void fill(float* to, float value) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void copy(float* to, const float* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

// Out of the compiler's sight.
__attribute__((noinline)) bool needs_more() {
  return getenv("SHORTFALL_NEEDS_MORE") != nullptr;
}
__attribute__((noinline)) float* buffer_of(size_t bytes) {
  float* buffer = nullptr;
  cudaMalloc(&buffer, bytes);
  return buffer;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t bytes = kNumbers * sizeof(float);
  std::vector<float> numbers(kNumbers);
  float *first = nullptr, *never = nullptr;
  cudaMalloc(&first, bytes);
  fill<<<kNumbers / 256, 256>>>(first, 1);
  if (needs_more()) {
    cudaMalloc(&never, 3 * bytes);
    copy<<<kNumbers / 256, 256>>>(never, first);
  }
  float* const unseen = buffer_of(2 * bytes);
  fill<<<kNumbers / 256, 256>>>(unseen, 3);
  cudaMemcpy(numbers.data(), unseen, bytes, cudaMemcpyDeviceToHost);
  while (argc > 1 && access(argv[1], F_OK) != 0) usleep(10000);
  cudaFree(unseen);
  cudaFree(never);
  cudaFree(first);
  for (const float number : numbers) {
    if (number != 3) return std::puts("FAIL"), 1;
  }
  std::puts("PASS");
  return 0;
}
