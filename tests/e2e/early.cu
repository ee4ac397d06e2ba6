// A buffer whose last use lies well before its free. With HIDDEN, a kernel leaves the buffer's address in another
// buffer, and a later kernel follows it there: an early free would take the memory from under it. With CAPTURED, the
// launches run after the last use that the code shows, from a graph. Says how much memory the program holds between
// last use and free.

#include <cstdio>
#include <vector>

namespace {

constexpr int kNumbers = 1 << 20;

__global__ void fill(float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = static_cast<float>(i % 1024);
}

#ifdef HIDDEN
__global__ void first(float* to, float* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 0;
  if (i < 2) reinterpret_cast<float**>(to)[i] = from;  // in the place of to[0] to to[3]
}
__global__ void second(float* to, const float* through) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = reinterpret_cast<float* const*>(through)[i % 2][i] + 1;
}
#else
__global__ void first(float* to, float* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}
__global__ void second(float* to, const float* through) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = through[i] + 1;
}
#endif

}  // namespace

int main() {
  const size_t bytes = kNumbers * sizeof(float);
  float *source = nullptr, *middle = nullptr, *result = nullptr;
  size_t free_before = 0, free_after = 0, total = 0;
  cudaMemGetInfo(&free_before, &total);
  cudaMalloc(&source, bytes);
  cudaMalloc(&middle, bytes);
  cudaMalloc(&result, bytes);
  cudaStream_t stream = nullptr;
#ifdef CAPTURED
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
#endif
  fill<<<kNumbers / 256, 256, 0, stream>>>(source);
  first<<<kNumbers / 256, 256, 0, stream>>>(middle, source);  // the last use of source that the host's code shows
  second<<<kNumbers / 256, 256, 0, stream>>>(result, middle);
#ifdef CAPTURED
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
#endif
  std::vector<float> numbers(kNumbers);
  cudaMemcpy(numbers.data(), result, bytes, cudaMemcpyDeviceToHost);
  cudaMemGetInfo(&free_after, &total);
  cudaFree(source);
  cudaFree(middle);
  cudaFree(result);
  for (int i = 0; i < kNumbers; ++i) {
    if (numbers[i] != static_cast<float>(i % 1024) + 1) return std::puts("FAIL"), 1;
  }
  std::printf("PASS, holding %zu buffers\n", (free_before - free_after + bytes / 2) / bytes);
  return 0;
}
