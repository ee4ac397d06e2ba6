// Copies between device 0 and device 1 by cudaMemcpyPeer: prints the rate, and checks the bytes of the last one.
// Usage: peer MIB REPEATS

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

#define CHECK(call)                                                                         \
  do {                                                                                      \
    if (cudaError_t error = (call); error != cudaSuccess) {                                 \
      std::fprintf(stderr, "peer: %s: %s (%d)\n", #call, cudaGetErrorString(error), error); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (false)

__device__ unsigned number_at(size_t i, unsigned seed) {
  return static_cast<unsigned>(i) * 2654435761u + seed;
}

__global__ void write(unsigned* numbers, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    numbers[i] = number_at(i, seed);
}

__global__ void compare(const unsigned* numbers, size_t count, unsigned seed, unsigned* wrong) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
    if (numbers[i] != number_at(i, seed)) atomicAdd(wrong, 1u);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: peer MIB REPEATS\n"), 64;
  const size_t bytes = std::strtoull(argv[1], nullptr, 10) << 20, count = bytes / sizeof(unsigned);
  const unsigned repeats = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2 || repeats == 0) return std::fprintf(stderr, "peer: %d devices, two are wanted\n", devices), 1;

  unsigned *here = nullptr, *there = nullptr, *wrong = nullptr;
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&there, bytes));
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  CHECK(cudaMemset(wrong, 0, sizeof *wrong));
  CHECK(cudaMemset(there, 0, bytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&here, bytes));
  write<<<1024, 256>>>(here, count, 0);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyPeer(there, 1, here, 0, bytes));  // what is only done once is not counted
  CHECK(cudaDeviceSynchronize());

  double seconds = 0;
  for (unsigned i = 1; i <= repeats; ++i) {
    write<<<1024, 256>>>(here, count, i);
    CHECK(cudaDeviceSynchronize());
    const double begin = now();
    CHECK(cudaMemcpyPeer(there, 1, here, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    seconds += now() - begin;
  }
  CHECK(cudaSetDevice(1));
  compare<<<1024, 256>>>(there, count, repeats, wrong);
  unsigned errors = 1;
  CHECK(cudaMemcpy(&errors, wrong, sizeof errors, cudaMemcpyDeviceToHost));
  std::printf("peer: %u copies of %zu MiB: %.6f s, %.2f GB/s: %s\n", repeats, bytes >> 20, seconds,
              static_cast<double>(bytes) * repeats / seconds / 1e9, errors == 0 ? "PASS" : "FAIL");
  return errors == 0 ? 0 : 2;
}
