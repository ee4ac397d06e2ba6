// Allocates, launches, reads back and frees, again and again: a buffer of some MiB, of which the end is used, and a
// small one. Says what an iteration takes, and what its memory calls take of that.
//
//   memory_loop ITERATIONS MIB [rest|keep|managed]
//     rest    then holds nothing until the end of its standard input
//     keep    allocates once, for all iterations
//     managed the large buffer is managed memory: zero at first, and the host changes the value that it reads
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

__global__ void write(unsigned* to, unsigned value) {
  to[threadIdx.x] = value + threadIdx.x;
}

unsigned *large = nullptr, *small = nullptr;
bool managed = false;

bool allocate(unsigned words) {
  const cudaError_t first =
      managed ? cudaMallocManaged(&large, words * sizeof *large) : cudaMalloc(&large, words * sizeof *large);
  return first == cudaSuccess && cudaMalloc(&small, 4096) == cudaSuccess;
}

// What the device wrote is there for the host, and the other way round.
bool touch(unsigned* word, unsigned expected) {
  if (cudaDeviceSynchronize() != cudaSuccess || *word != expected) return false;
  *word += 1;
  write<<<1, 1>>>(small, 0);  // a launch takes the page to the device
  unsigned seen = 0;
  return cudaMemcpy(&seen, word, sizeof seen, cudaMemcpyDeviceToHost) == cudaSuccess && seen == expected + 1;
}

bool release() {
  return cudaFree(small) == cudaSuccess && cudaFree(large) == cudaSuccess;
}

bool iterate(unsigned words, unsigned value, bool keep, double* memory_calls) {
  using Clock = std::chrono::steady_clock;
  unsigned last = 0;
  const auto begin = Clock::now();
  if (!keep && !allocate(words)) return false;
  const auto allocated = Clock::now();
  if (managed && large[words - 1] != 0) return false;
  write<<<1, 32>>>(small, value);
  write<<<1, 32>>>(large + words - 32, value);
  const bool right = cudaMemcpy(&last, large + words - 1, sizeof last, cudaMemcpyDeviceToHost) == cudaSuccess &&
                     last == value + 31 && (!managed || touch(large + words - 1, value + 31));
  const auto used = Clock::now();
  const bool freed = keep || release();
  *memory_calls += std::chrono::duration<double>(Clock::now() - used + (allocated - begin)).count();
  return right && freed;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned iterations = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100;
  const unsigned words = (argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 4) << 18;
  const std::string how = argc > 3 ? argv[3] : "";
  const bool keep = how == "keep";
  managed = how == "managed";
  double memory_calls = 0;
  if ((keep && !allocate(words)) || !iterate(words, 0, keep, &memory_calls)) return std::puts("FAIL"), 1;
  memory_calls = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned i = 1; i <= iterations; ++i) {
    if (!iterate(words, i, keep, &memory_calls)) return std::puts("FAIL"), 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("memory_loop: %.2f us an iteration, %.3f us of them its memory calls: PASS\n",
              1e6 * took.count() / iterations, 1e6 * memory_calls / iterations);
  std::fflush(stdout);
  char ignored;
  while (how == "rest" && ::read(STDIN_FILENO, &ignored, 1) > 0) continue;
  return keep && !release() ? 1 : 0;
}
