// One thread waits in cudaMalloc for a second device, which somebody else has; the other goes on with the first device
// meanwhile: memory, what there is of it, kernels. Makes the file FILE once that is done, and ends when the second
// device was there.
//
//   waiting_thread FILE
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

__global__ void write(unsigned* to, unsigned value) {
  to[threadIdx.x] = value + threadIdx.x;
}

bool use_device(unsigned value) {
  unsigned* memory = nullptr;
  unsigned last = 0;
  size_t free = 0, total = 0;
  if (cudaMalloc(&memory, 3 << 20) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) return false;
  write<<<1, 32>>>(memory, value);
  return cudaMemcpy(&last, memory + 31, sizeof last, cudaMemcpyDeviceToHost) == cudaSuccess && last == value + 31 &&
         cudaFree(memory) == cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (argc < 2 || cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) return std::puts("FAIL: no devices"), 1;
  unsigned* held = nullptr;
  if (cudaMalloc(&held, 1 << 20) != cudaSuccess || !use_device(1)) return std::puts("FAIL: first device"), 1;
  std::atomic<bool> over{false}, well{false};
  std::thread waiting([&] {
    well = cudaSetDevice(1) == cudaSuccess && use_device(2);
    over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  bool served = true;
  for (unsigned round = 0; round < 5; ++round) served = served && use_device(round);
  if (!served) std::puts("FAIL: beside the waiting thread");
  if (over) std::puts("FAIL: the second device was free");
  if (FILE* const file = served && !over ? std::fopen(argv[1], "w") : nullptr) std::fclose(file);
  waiting.join();
  if (!well) std::puts("FAIL: second device");
  if (!served || !well) return 1;
  std::puts("PASS");
  return 0;
}
