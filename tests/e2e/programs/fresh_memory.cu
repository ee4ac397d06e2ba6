// Memory is zero at first, whoever had it before; then every byte of it is written to.
//
//   fresh_memory [MiB [leave]]     leave: it is left to the program's end to give the memory back
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void begin_task() {}

int main(int argc, char** argv) {
  const size_t bytes = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 8) << 20;
  void* memory;
  std::vector<unsigned char> read(bytes, 1);
  if (cudaMalloc(&memory, bytes) != cudaSuccess) return 1;
  begin_task<<<1, 1>>>();
  if (cudaMemcpy(read.data(), memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  const auto dirty = std::count_if(read.begin(), read.end(), [](unsigned char byte) { return byte != 0; });
  if (cudaMemset(memory, 0xab, bytes) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) return 1;
  if (argc < 3 && cudaFree(memory) != cudaSuccess) return 1;
  std::printf(dirty ? "FAIL: %zu bytes are not zero\n" : "PASS\n", static_cast<size_t>(dirty));
  return dirty != 0;
}
