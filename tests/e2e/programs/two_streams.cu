// A long kernel on one stream, and on another one short work that the program waits for, again and again: what it waits
// for is there, although the long kernel goes on. Whatever happens to workers, it prints what it prints undisturbed.
#include <cstdio>

#include "numbers.h"

constexpr int kThreads = 32;
constexpr unsigned kTurns = 30000, kWaits = 8;

__global__ void update(unsigned* numbers, unsigned turns, unsigned value) {
  unsigned number = numbers[threadIdx.x];
  for (unsigned turn = 0; turn < turns; ++turn) number = number * 3 + value;
  numbers[threadIdx.x] = number;
}

void update_on_host(Numbers& numbers, unsigned turns, unsigned value) {
  for (unsigned& number : numbers) {
    for (unsigned turn = 0; turn < turns; ++turn) number = number * 3 + value;
  }
}

struct Quick {
  unsigned* device;
  cudaStream_t stream;
  Numbers wanted;
};

// How often the program has waited before the other stream was done.
unsigned wait_again_and_again(Quick& quick, cudaStream_t slow) {
  unsigned before = 0;
  for (unsigned wait = 0; wait < kWaits; ++wait) {
    Numbers seen(kThreads);
    update<<<1, kThreads, 0, quick.stream>>>(quick.device, 1, wait);
    CHECK(
        cudaMemcpyAsync(seen.data(), quick.device, kThreads * sizeof(unsigned), cudaMemcpyDeviceToHost, quick.stream));
    CHECK(cudaStreamSynchronize(quick.stream));
    update_on_host(quick.wanted, 1, wait);
    if (seen != quick.wanted) std::printf("wrong after %u waits\n", wait);
    before += cudaStreamQuery(slow) == cudaErrorNotReady;
  }
  return before;
}

int main() {
  Numbers numbers(kThreads, 1);
  unsigned* const device = on_device(numbers);
  (void)on_device(Numbers(1024));  // so that neither's memory ends where the other's begins
  Quick quick{on_device(Numbers(kThreads, 2)), nullptr, Numbers(kThreads, 2)};
  cudaStream_t slow;
  CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&quick.stream, cudaStreamNonBlocking));
  update<<<1, kThreads, 0, slow>>>(device, kTurns, 5);
  update_on_host(numbers, kTurns, 5);
  std::printf("%u waits before the long kernel was done\n", wait_again_and_again(quick, slow));
  std::fflush(stdout);
  wait_again_and_again(quick, slow);
  CHECK(cudaDeviceSynchronize());
  std::printf("PASS: %u %u\n", right_sum(device, numbers, "numbers"), right_sum(quick.device, quick.wanted, "others"));
  return 0;
}
