// CUDA graphs, captured over two streams and built by hand; the sums are checked against the host's. Prints PASS.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 16, kBlock = 256;

__global__ void scale(float* values, float factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
__global__ void add(float* to, const float* other) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] += other[i];
}

// (3 a + 5 b) per launch, from and to pageable memory.
static bool captured(float* a, float* b) {
  std::vector<float> in(kCount), out(kCount);
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemcpyAsync(a, in.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  CHECK(cudaMemcpyAsync(b, a, kCount * sizeof(float), cudaMemcpyDeviceToDevice, other));
  scale<<<kCount / kBlock, kBlock, 0, other>>>(b, 5);
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  scale<<<kCount / kBlock, kBlock, 0, stream>>>(a, 3);
  add<<<kCount / kBlock, kBlock, 0, stream>>>(a, b);
  CHECK(cudaMemcpyAsync(out.data(), a, kCount * sizeof(float), cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  bool right = true;
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kCount; ++i) in[i] = static_cast<float>(i % 100 * round);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) right &= out[i] == 8 * in[i];
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return right;
}

// A chain of a fill, a kernel, a copy and a host function; then with another factor.
static bool built(float* a) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill, kernel, host, back;
  cudaMemsetParams fill_params = {};
  fill_params.dst = a;
  fill_params.elementSize = 4;
  fill_params.value = 0x40000000;  // 2.0f
  fill_params.width = kCount;
  fill_params.height = 1;
  CHECK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &fill_params));
  float factor = 4;
  void* arguments[] = {&a, &factor};
  cudaKernelNodeParams kernel_params = {};
  kernel_params.func = reinterpret_cast<void*>(scale);
  kernel_params.gridDim = dim3(kCount / kBlock);
  kernel_params.blockDim = dim3(kBlock);
  kernel_params.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &kernel_params));
  static float sum;
  static std::vector<float> out(kCount);
  CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &kernel, 1, out.data(), a, kCount * sizeof(float),
                                 cudaMemcpyDeviceToHost));
  cudaHostNodeParams host_params = {};
  host_params.fn = [](void*) {
    sum = 0;
    for (const float value : out) sum += value;
  };
  CHECK(cudaGraphAddHostNode(&host, graph, &back, 1, &host_params));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  bool right = sum == 8.0f * kCount;
  factor = 16;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &kernel_params));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  right &= sum == 32.0f * kCount;
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return right;
}

int main() {
  float *a, *b;
  CHECK(cudaMalloc(&a, kCount * sizeof(float)));
  CHECK(cudaMalloc(&b, kCount * sizeof(float)));
  const bool first = captured(a, b), second = built(a);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  std::printf("captured %d, built %d: %s\n", first, second, first && second ? "PASS" : "FAIL");
  return first && second ? 0 : 1;
}
