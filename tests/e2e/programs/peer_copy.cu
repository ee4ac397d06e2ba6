// Copies between two devices in every form, without access from one to the other's memory.

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

constexpr int kNumbers = 3 << 20;  // more than a piece of a staged copy
constexpr size_t kBytes = kNumbers * sizeof(int);
constexpr cudaExtent kSmallBox{100, 7, 3};
constexpr cudaExtent kLargeBox{3000, 512, 2};  // large enough for a keeper to be asked

#define CHECK(call)                                                                               \
  do {                                                                                            \
    if (const cudaError_t error = (call); error != cudaSuccess)                                   \
      return std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error)), false; \
  } while (0)
#define EXPECT(condition) \
  if (!(condition)) return std::printf("line %d: not so: %s\n", __LINE__, #condition), false

__global__ void add(int* numbers, int more) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kNumbers) numbers[i] += more;
}

bool holds(const int* device_memory, int more) {
  std::vector<int> host(kNumbers);
  CHECK(cudaMemcpy(host.data(), device_memory, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kNumbers; ++i) EXPECT(host[i] == i + more);
  return true;
}

bool access_is_refused() {
  int can = 1;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT(can == 0);
  EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessUnsupported);
  EXPECT(cudaGetLastError() == cudaErrorPeerAccessUnsupported);
  return true;
}

bool linear(int* here, int* there) {
  add<<<kNumbers / 256, 256>>>(here, 1);
  CHECK(cudaMemcpyPeer(there, 1, here, 0, kBytes));  // after the kernel
  if (!holds(there, 1)) return false;
  add<<<kNumbers / 256, 256>>>(here, 1);
  CHECK(cudaMemcpy(there, here, kBytes, cudaMemcpyDefault));
  return holds(there, 2);
}

// The copy follows the kernel on its stream, and the other device's kernel follows the copy's event.
bool in_stream_order(int* here, int* there) {
  cudaStream_t first, second;
  cudaEvent_t copied;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  add<<<kNumbers / 256, 256, 0, first>>>(here, 1);
  CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, kBytes, first));
  CHECK(cudaEventRecord(copied, first));
  CHECK(cudaSetDevice(1));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaStreamWaitEvent(second, copied, 0));
  add<<<kNumbers / 256, 256, 0, second>>>(there, 10);
  CHECK(cudaStreamSynchronize(second));
  if (!holds(there, 13)) return false;
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaSetDevice(0));
  CHECK(cudaEventDestroy(copied));
  CHECK(cudaStreamDestroy(first));
  return true;
}

bool box(cudaExtent extent) {
  const size_t width = extent.width, rows = extent.height * extent.depth;
  cudaPitchedPtr here{}, there{};
  std::vector<unsigned char> sent(width * rows), received(sent.size());
  std::iota(sent.begin(), sent.end(), static_cast<unsigned char>(0));
  CHECK(cudaMalloc3D(&here, extent));
  CHECK(cudaMemcpy2D(here.ptr, here.pitch, sent.data(), width, width, rows, cudaMemcpyHostToDevice));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc3D(&there, extent));
  cudaMemcpy3DPeerParms copy{};
  copy.srcPtr = here;
  copy.srcDevice = 0;
  copy.dstPtr = there;
  copy.dstDevice = 1;
  copy.extent = extent;
  CHECK(cudaMemcpy3DPeer(&copy));
  CHECK(cudaMemcpy2D(received.data(), width, there.ptr, there.pitch, width, rows, cudaMemcpyDeviceToHost));
  EXPECT(received == sent);
  CHECK(cudaFree(there.ptr));
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(here.ptr));
  return true;
}

bool all() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  EXPECT(devices >= 2);
  std::vector<int> host(kNumbers);
  std::iota(host.begin(), host.end(), 0);
  int *here = nullptr, *there = nullptr;
  CHECK(cudaMalloc(&here, kBytes));
  CHECK(cudaMemcpy(here, host.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc(&there, kBytes));
  CHECK(cudaSetDevice(0));
  if (!access_is_refused() || !linear(here, there) || !in_stream_order(here, there)) return false;
  if (!box(kSmallBox) || !box(kLargeBox)) return false;
  CHECK(cudaFree(here));
  CHECK(cudaFree(there));
  return true;
}

}  // namespace

int main() {
  if (!all()) return 1;
  std::puts("PASS");
  return 0;
}
