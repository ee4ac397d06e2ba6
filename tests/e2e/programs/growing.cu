// Allocates more and more in one task without ever waiting for the device, then reads everything back.

#include <cstdio>
#include <thread>
#include <vector>

constexpr int kBuffers = 60;
constexpr size_t kBytes = 2 << 20;  // a segment each

__global__ void begin_task() {}

int main() {
  std::vector<unsigned char*> buffers(kBuffers);
  for (int i = 0; i < kBuffers; ++i) {
    if (cudaMalloc(&buffers[i], kBytes) != cudaSuccess || cudaMemsetAsync(buffers[i], i + 1, kBytes) != cudaSuccess) {
      std::printf("FAIL: buffer %d: %s\n", i, cudaGetErrorString(cudaGetLastError()));
      return 1;
    }
    if (i == 0) begin_task<<<1, 1>>>();  // with the first buffer; the others come later
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<unsigned char> read(kBytes);
  for (int i = 0; i < kBuffers; ++i) {
    const cudaError_t copied = cudaMemcpy(read.data(), buffers[i], kBytes, cudaMemcpyDeviceToHost);
    if (copied != cudaSuccess || read.front() != i + 1 || read.back() != i + 1) {
      std::printf("FAIL: buffer %d begins with %d: %s\n", i, read.front(), cudaGetErrorString(copied));
      return 1;
    }
  }
  std::printf("PASS\n");
}
