// Tasks in a row, and then cudaDeviceReset: variables keep what was written to them from task to task, and begin anew
// behind the reset, as do constants.
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

int main() {
  for (int round = 0; round < 2; ++round) {
    if (!counts(5, 7)) return 1;
    const int other = 8;
    cudaMemcpyToSymbol(constant, &other, sizeof other);
    if (!counts(6, 8) || !counts(7, 8)) return 1;
    if (cudaDeviceReset() != cudaSuccess || cudaDeviceReset() != cudaSuccess) return 1;
  }
  std::printf("PASS\n");
  return 0;
}
