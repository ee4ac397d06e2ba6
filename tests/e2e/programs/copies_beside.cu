// Copies from one device to the other and back, beside kernels that a second thread launches on another stream of the
// first device all the while: they update numbers of their own in place, and so that device always has work that a
// worker would have to run again. The numbers that travel are updated on both devices, and share a buffer with those
// that stay: who saves the buffer saves both. Whatever happens to the first device's workers, it prints what it prints
// undisturbed.
//
// Usage: copies_beside DIRECTORY STEPS [COPIES [TURNS]]: step n begins when DIRECTORY/n is there; COPIES each way, of
// each; kernels beside are as long as TURNS updates of a number.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "numbers.h"

constexpr int kThreads = 256;
constexpr unsigned kTravel = 1 << 20;  // large enough for a keeper to be asked
constexpr unsigned kStay = 1 << 14;

__host__ __device__ inline unsigned updated(unsigned number, unsigned value) {
  return number * 3 + value;
}

__global__ void update(unsigned* numbers, unsigned count, unsigned value, unsigned turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (unsigned turn = 0; turn < turns; ++turn) numbers[i] = updated(numbers[i], value + turn);
}

// Each kernel is waited for, so that copies find the device's streams done now and then. `launches`: how many.
void stay_busy(unsigned* numbers, unsigned turns, const std::atomic<bool>& over, unsigned& launches) {
  cudaStream_t stream;
  CHECK(cudaSetDevice(0));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (launches = 0; !over; ++launches) {
    update<<<kStay / kThreads, kThreads, 0, stream>>>(numbers, kStay, launches, turns);
    CHECK(cudaStreamSynchronize(stream));
  }
}

void there_and_back(unsigned* here, unsigned* there, unsigned value, cudaStream_t stream) {
  update<<<kTravel / kThreads, kThreads, 0, stream>>>(here, kTravel, value, 1);
  CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, kTravel * sizeof(unsigned), stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaSetDevice(1));
  update<<<kTravel / kThreads, kThreads>>>(there, kTravel, value + 1, 1);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(0));
  CHECK(cudaMemcpyPeerAsync(here, 0, there, 1, kTravel * sizeof(unsigned), stream));
}

int main(int count, char** arguments) {
  const std::string directory = arguments[1];
  const int steps = std::atoi(arguments[2]), copies = count > 3 ? std::atoi(arguments[3]) : 4;
  const unsigned turns = count > 4 ? std::atoi(arguments[4]) : 8;
  Numbers travel(kTravel), stay(kStay);
  for (unsigned i = 0; i < kTravel; ++i) travel[i] = i;
  for (unsigned i = 0; i < kStay; ++i) stay[i] = i * 7;
  Numbers both(travel);
  both.insert(both.end(), stay.begin(), stay.end());
  unsigned *const here = on_device(both), *const staying = here + kTravel;
  CHECK(cudaSetDevice(1));
  unsigned* const there = on_device(travel);
  cudaStream_t stream;
  CHECK(cudaSetDevice(0));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::atomic<bool> over{false};
  unsigned launches = 0;
  std::thread beside([&] { stay_busy(staying, turns, over, launches); });
  for (int step = 1; step <= steps; ++step) {
    std::printf("step %d\n", step);
    std::fflush(stdout);
    while (access((directory + "/" + std::to_string(step)).c_str(), F_OK) != 0) usleep(2000);
    for (int n = 0; n < copies; ++n) {
      const unsigned value = step * 100 + n;
      there_and_back(here, there, value, stream);
      for (unsigned& number : travel) number = updated(updated(number, value), value + 1);
    }
  }
  CHECK(cudaStreamSynchronize(stream));
  over = true;
  beside.join();
  for (unsigned n = 0; n < launches; ++n) {
    for (unsigned& number : stay) {
      for (unsigned turn = 0; turn < turns; ++turn) number = updated(number, n + turn);
    }
  }
  std::printf("copied: %u\n", right_sum(here, travel, "copied"));
  right_sum(staying, stay, "beside");
  std::puts("PASS");
  return 0;
}
