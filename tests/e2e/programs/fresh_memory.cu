// Memory is zero at first, whoever had it before; then every byte of it is written to.
//
//   fresh_memory [MiB [free|leave|kill]]
//     free    it is given back, by a reset, and so a second time; leave: its end gives it back; kill: it is killed, by
//             itself. What is only freed stays the program's own, and is what it was when it is allocated anew.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

__global__ void begin_task() {}

bool is_zero_then_written(size_t bytes, void** memory) {
  std::vector<unsigned char> read(bytes, 1);
  if (cudaMalloc(memory, bytes) != cudaSuccess) return false;
  begin_task<<<1, 1>>>();
  if (cudaMemcpy(read.data(), *memory, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
  const auto dirty = std::count_if(read.begin(), read.end(), [](unsigned char byte) { return byte != 0; });
  if (dirty) std::printf("FAIL: %zu bytes are not zero\n", static_cast<size_t>(dirty));
  return cudaMemset(*memory, 0xab, bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess && dirty == 0;
}

int main(int argc, char** argv) {
  const size_t bytes = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 8) << 20;
  const std::string how = argc > 2 ? argv[2] : "free";
  void* memory;
  for (int round = 0; round < (how == "free" ? 2 : 1); ++round) {
    if (!is_zero_then_written(bytes, &memory)) return 1;
    if (how == "free" && (cudaFree(memory) != cudaSuccess || cudaDeviceReset() != cudaSuccess)) return 1;
  }
  std::printf("PASS\n");
  std::fflush(stdout);
  if (how == "kill") std::raise(SIGKILL);
  return 0;
}
