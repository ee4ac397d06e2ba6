// Graphs that allocate and free: one captured, whose result stays until another graph frees it, and one built by hand
// in which an address is used again. Prints PASS.
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kCount = 1 << 18, kRounds = 4;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void fill(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void add(int* to, const int* from, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + value;
}

bool all(const int* on_device, int value) {
  std::vector<int> read(kCount);
  cudaMemcpy(read.data(), on_device, kBytes, cudaMemcpyDeviceToHost);
  for (int found : read) {
    if (found != value) return false;
  }
  return true;
}

int main() {
  cudaStream_t stream;
  cudaGraph_t captured, freeing, built;
  cudaGraphExec_t run_captured, run_freeing, run_built;
  cudaGraphNode_t node, freed;
  int *temporary, *result, *out;
  uint64_t held = 0;
  bool right = true;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(&out, kBytes);

  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  cudaMallocAsync(&temporary, kBytes, stream);
  cudaMallocAsync(&result, kBytes, stream);
  fill<<<kCount / 256, 256, 0, stream>>>(temporary, 20);
  add<<<kCount / 256, 256, 0, stream>>>(result, temporary, 3);
  cudaFreeAsync(temporary, stream);
  cudaStreamEndCapture(stream, &captured);
  cudaGraphInstantiate(&run_captured, captured, 0);
  cudaGraphCreate(&freeing, 0);
  cudaGraphAddMemFreeNode(&node, freeing, nullptr, 0, result);
  cudaGraphInstantiate(&run_freeing, freeing, 0);

  cudaGraphCreate(&built, 0);
  cudaMemAllocNodeParams first{}, second{};
  first.poolProps.allocType = cudaMemAllocationTypePinned;
  first.poolProps.location = {cudaMemLocationTypeDevice, {0}};
  first.bytesize = kBytes;
  second = first;
  cudaGraphAddMemAllocNode(&node, built, nullptr, 0, &first);
  cudaGraphAddMemFreeNode(&freed, built, &node, 1, first.dptr);
  cudaGraphAddMemAllocNode(&node, built, &freed, 1, &second);
  right &= first.dptr == second.dptr;
  int value = 5;
  void* arguments[] = {&second.dptr, &value};
  cudaKernelNodeParams kernel{reinterpret_cast<void*>(fill), kCount / 256, 256, 0, arguments, nullptr};
  cudaGraphNode_t filled, copied;
  cudaGraphAddKernelNode(&filled, built, &node, 1, &kernel);
  cudaGraphAddMemcpyNode1D(&copied, built, &filled, 1, out, second.dptr, kBytes, cudaMemcpyDeviceToDevice);
  cudaGraphAddMemFreeNode(&freed, built, &copied, 1, second.dptr);
  cudaGraphInstantiate(&run_built, built, 0);
  cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &held);
  right &= held == 0;

  for (int round = 0; round < kRounds; ++round) {
    cudaGraphLaunch(run_captured, stream);
    add<<<kCount / 256, 256, 0, stream>>>(out, result, round);
    cudaStreamSynchronize(stream);
    right &= all(out, 23 + round);
    cudaGraphLaunch(run_freeing, stream);
    cudaGraphLaunch(run_built, stream);
    cudaStreamSynchronize(stream);
    right &= all(out, 5);
  }
  cudaGraphExecDestroy(run_captured);
  cudaGraphExecDestroy(run_freeing);
  cudaGraphExecDestroy(run_built);
  cudaGraphDestroy(captured);
  cudaGraphDestroy(freeing);
  cudaGraphDestroy(built);
  cudaDeviceGraphMemTrim(0);
  cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &held);
  right &= held == 0;
  cudaFree(out);
  const cudaError_t error = cudaGetLastError();
  std::printf("%s\n", right && error == cudaSuccess ? "PASS" : cudaGetErrorString(error));
  return right && error == cudaSuccess ? 0 : 1;
}
