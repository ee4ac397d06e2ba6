// Allocates COUNT buffers of KIB each, writes a number of its own into each, reads them all back, frees every second
// one, allocates those again and reads once more. Where cudaMalloc refuses one it says so, and that what was allocated
// before still works.
//
//   many_buffers COUNT KIB
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

__global__ void write(unsigned** buffers, unsigned count, unsigned words, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  buffers[i][0] = value + i;
  buffers[i][words - 1] = value + 2 * i;
}

// The number of buffers that do not hold what write() put there.
__global__ void check(unsigned** buffers, unsigned count, unsigned words, unsigned value, unsigned* wrong) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (buffers[i][0] != value + i || buffers[i][words - 1] != value + 2 * i) atomicAdd(wrong, 1);
}

bool use(const std::vector<unsigned*>& buffers, unsigned words, unsigned value) {
  const unsigned count = static_cast<unsigned>(buffers.size());
  unsigned **table = nullptr, *wrong = nullptr, found = 1;
  if (cudaMalloc(&table, (count + 1) * sizeof *table) != cudaSuccess) return false;
  wrong = reinterpret_cast<unsigned*>(table + count);
  cudaMemcpy(table, buffers.data(), count * sizeof *table, cudaMemcpyHostToDevice);
  cudaMemset(wrong, 0, sizeof *wrong);
  write<<<(count + 127) / 128, 128>>>(table, count, words, value);
  check<<<(count + 127) / 128, 128>>>(table, count, words, value, wrong);
  return cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost) == cudaSuccess && found == 0 &&
         cudaFree(table) == cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1000;
  const size_t bytes = (argc > 2 ? static_cast<size_t>(std::atoi(argv[2])) : 1024) << 10;
  const unsigned words = static_cast<unsigned>(bytes / sizeof(unsigned));
  std::vector<unsigned*> buffers;
  unsigned* table = nullptr;
  cudaMalloc(&table, 16);  // the table of use() finds room
  cudaError_t refused = cudaSuccess;
  for (unsigned i = 0; i < count && refused == cudaSuccess; ++i) {
    unsigned* buffer = nullptr;
    refused = cudaMalloc(&buffer, bytes);
    if (refused == cudaSuccess) buffers.push_back(buffer);
  }
  if (!use(buffers, words, 1000)) return std::puts("FAIL: what was allocated"), 1;
  if (refused != cudaSuccess) {
    std::printf("refused %s after %zu\n", cudaGetErrorName(refused), buffers.size());
    return 3;
  }
  for (unsigned i = 0; i < count; i += 2) {
    if (cudaFree(buffers[i]) != cudaSuccess) return std::puts("FAIL: cudaFree"), 1;
  }
  for (unsigned i = 0; i < count; i += 2) {
    if (cudaMalloc(&buffers[i], bytes) != cudaSuccess) return std::puts("FAIL: cudaMalloc after cudaFree"), 1;
  }
  if (!use(buffers, words, 5000)) return std::puts("FAIL: what was allocated again"), 1;
  for (unsigned* buffer : buffers) {
    if (cudaFree(buffer) != cudaSuccess) return std::puts("FAIL: cudaFree of all"), 1;
  }
  std::puts("PASS");
  return 0;
}
