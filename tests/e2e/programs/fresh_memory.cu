// Memory is zero at first, whoever had it before; then every byte of it is written to. With an argument the program
// leaves it to its end to give the memory back.
#include <algorithm>
#include <cstdio>
#include <vector>

constexpr size_t kBytes = 8 << 20;

__global__ void begin_task() {}

int main(int argc, char**) {
  void* memory;
  std::vector<unsigned char> read(kBytes, 1);
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) return 1;
  begin_task<<<1, 1>>>();
  if (cudaMemcpy(read.data(), memory, kBytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  const auto dirty = std::count_if(read.begin(), read.end(), [](unsigned char byte) { return byte != 0; });
  if (cudaMemset(memory, 0xab, kBytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  if (argc == 1 && cudaFree(memory) != cudaSuccess) return 1;
  std::printf(dirty ? "FAIL: %zu bytes are not zero\n" : "PASS\n", static_cast<size_t>(dirty));
  return dirty != 0;
}
