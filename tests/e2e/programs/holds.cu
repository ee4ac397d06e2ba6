// Holds much device memory from its first step to its last, and changes all of it in each. What a step finds in it is
// printed as a sum, which an undisturbed run prints too.
//
// Usage: holds DIRECTORY STEPS MIB [MORE]: behind the first step it has MORE MiB besides. Step n begins when
// DIRECTORY/n is there, and can be read: where it is a pipe, when somebody opens it for writing.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"

constexpr unsigned kThreads = 256, kPerThread = 64;

__global__ void change(unsigned* words, unsigned step) {
  const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPerThread;
  for (unsigned i = first; i < first + kPerThread; ++i) words[i] = words[i] * 1664525u + i * step + 1013904223u;
}

__global__ void sum_up(const unsigned* words, unsigned* sum) {
  const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPerThread;
  unsigned own = 0;
  for (unsigned i = first; i < first + kPerThread; ++i) own = own * 31 + words[i];
  atomicAdd(sum, own);
}

// A buffer of so many MiB, zeroed.
struct Buffer {
  explicit Buffer(const char* mib) : bytes(static_cast<size_t>(std::atoi(mib)) << 20) {
    CHECK(cudaMalloc(&words, bytes));
    CHECK(cudaMemset(words, 0, bytes));
  }
  unsigned blocks() const { return static_cast<unsigned>(bytes / sizeof(unsigned) / kPerThread / kThreads); }

  unsigned* words = nullptr;
  size_t bytes;
};

int main(int count, char** arguments) {
  const std::string directory = arguments[1];
  const unsigned steps = static_cast<unsigned>(std::atoi(arguments[2]));
  unsigned* sum;
  std::vector<Buffer> buffers{Buffer(arguments[3])};
  CHECK(cudaMalloc(&sum, sizeof(unsigned)));
  for (unsigned step = 1; step <= steps; ++step) {
    for (const Buffer& each : buffers) change<<<each.blocks(), kThreads>>>(each.words, step);
    CHECK(cudaDeviceSynchronize());
    std::printf("step %u\n", step);
    std::fflush(stdout);
    const std::string name = directory + "/" + std::to_string(step);
    while (access(name.c_str(), F_OK) != 0) usleep(2000);
    close(open(name.c_str(), O_RDONLY));
    if (step == 1 && count > 4) buffers.emplace_back(arguments[4]);
    unsigned found = 0;
    CHECK(cudaMemset(sum, 0, sizeof(unsigned)));
    for (const Buffer& each : buffers) sum_up<<<each.blocks(), kThreads>>>(each.words, sum);
    CHECK(cudaMemcpy(&found, sum, sizeof found, cudaMemcpyDeviceToHost));
    std::printf("sum %u\n", found);
  }
  for (const Buffer& each : buffers) CHECK(cudaFree(each.words));
  CHECK(cudaFree(sum));
  std::printf("PASS\n");
}
