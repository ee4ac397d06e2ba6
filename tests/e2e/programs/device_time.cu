// Uses the device in one way, for tests of what is measured: `fills`, `copies`, or `streams STEPS`: a kernel of so many
// steps on each of two streams, side by side.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr size_t kBytes = 16 << 20;
constexpr int kTimes = 20;

__global__ void compute(unsigned* result, unsigned steps) {
  unsigned value = threadIdx.x;
  for (unsigned i = 0; i < steps; ++i) value = value * 1664525 + 1013904223;
  result[threadIdx.x] = value;
}

int main(int count, char** arguments) {
  const char* way = count > 1 ? arguments[1] : "";
  unsigned* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) return 1;
  std::vector<char> host(kBytes);
  if (std::strcmp(way, "fills") == 0) {
    for (int i = 0; i < kTimes; ++i) cudaMemset(memory, i, kBytes);
  } else if (std::strcmp(way, "copies") == 0) {
    for (int i = 0; i < kTimes; ++i) cudaMemcpy(memory, host.data(), kBytes, cudaMemcpyHostToDevice);
  } else if (std::strcmp(way, "streams") == 0 && count > 2) {
    const auto steps = static_cast<unsigned>(std::atoi(arguments[2]));
    cudaStream_t streams[2];
    for (int i = 0; i < 2; ++i) {
      cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
      compute<<<1, 32, 0, streams[i]>>>(memory + 32 * i, steps);
    }
  } else {
    std::printf("no such way: '%s'\n", way);
    return 2;
  }
  const cudaError_t done = cudaDeviceSynchronize();
  cudaFree(memory);
  std::printf(done == cudaSuccess ? "PASS\n" : "FAIL: %s\n", cudaGetErrorString(done));
  return done == cudaSuccess ? 0 : 1;
}
