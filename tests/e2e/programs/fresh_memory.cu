// Memory is zero at first, whoever had it before; then every byte of it is written to.
//
//   fresh_memory [MiB [free|leave|kill]]     leave: its end gives the memory back; kill: it is killed, by itself
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
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
  const std::string how = argc > 2 ? argv[2] : "free";
  if (how == "free" && cudaFree(memory) != cudaSuccess) return 1;
  std::printf(dirty ? "FAIL: %zu bytes are not zero\n" : "PASS\n", static_cast<size_t>(dirty));
  std::fflush(stdout);
  if (how == "kill") std::raise(SIGKILL);
  return dirty != 0;
}
