// Tasks in a row, and then cudaDeviceReset: variables keep what was written to them from task to task, and begin anew
// behind the reset, as do constants. Limits are the defaults again, and what kernels allocated is gone.
#include <cstdio>

__device__ int counter = 5;
__constant__ int constant = 7;

__global__ void count(int* seen) {
  seen[0] = counter++;
  seen[1] = constant;
}

bool counts(int counter_wanted, int constant_wanted) {
  int* seen;
  int host[2] = {-1, -1};
  cudaMalloc(&seen, sizeof host);
  count<<<1, 1>>>(seen);
  cudaMemcpy(host, seen, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(seen);
  if (host[0] == counter_wanted && host[1] == constant_wanted && cudaGetLastError() == cudaSuccess) return true;
  std::printf("counter %d, constant %d; wanted %d and %d\n", host[0], host[1], counter_wanted, constant_wanted);
  return false;
}

// How many pieces of 64 KiB the heap still gives, of at most `most`.
__global__ void exhaust(int most, int* given) {
  for (*given = 0; *given < most && malloc(64 << 10); ++*given) {
  }
}

int pieces(int most) {
  int *given, host = -1;
  cudaMalloc(&given, sizeof host);
  exhaust<<<1, 1>>>(most, given);
  cudaMemcpy(&host, given, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(given);
  return host;
}

bool limits() {
  size_t heap, stack, print, now;
  cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize);
  cudaDeviceGetLimit(&stack, cudaLimitStackSize);
  cudaDeviceGetLimit(&print, cudaLimitPrintfFifoSize);
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20);
  cudaDeviceSetLimit(cudaLimitStackSize, 4096);
  cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20);
  const int large = pieces(1000), rest = pieces(1000);
  if (cudaDeviceReset() != cudaSuccess) return false;
  const bool as_before = cudaDeviceGetLimit(&now, cudaLimitMallocHeapSize) == cudaSuccess && now == heap &&
                         cudaDeviceGetLimit(&now, cudaLimitStackSize) == cudaSuccess && now == stack &&
                         cudaDeviceGetLimit(&now, cudaLimitPrintfFifoSize) == cudaSuccess && now == print;
  const int small = pieces(1000);
  const bool settable =
      cudaDeviceReset() == cudaSuccess && cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20) == cudaSuccess;
  if (as_before && settable && rest == 0 && small > 0 && small < large) return cudaDeviceReset() == cudaSuccess;
  std::printf("as before %d, settable %d, pieces %d, then %d, after the reset %d\n", as_before, settable, large, rest,
              small);
  return false;
}

int main() {
  for (int round = 0; round < 2; ++round) {
    if (!counts(5, 7)) return 1;
    const int other = 8;
    cudaMemcpyToSymbol(constant, &other, sizeof other);
    if (!counts(6, 8) || !counts(7, 8)) return 1;
    if (cudaDeviceReset() != cudaSuccess || cudaDeviceReset() != cudaSuccess) return 1;
    if (!limits()) return 1;
  }
  std::printf("PASS\n");
  return 0;
}
