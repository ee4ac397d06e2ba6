// Stream-ordered allocation: each round's buffer is the one that the round before freed. Prints PASS.
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kCount = 1 << 18, kRounds = 8;

__global__ void fill(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void sum(const int* values, unsigned long long* total) {
  atomicAdd(total, static_cast<unsigned long long>(values[blockIdx.x * blockDim.x + threadIdx.x]));
}

int main() {
  cudaStream_t streams[2];
  cudaMemPool_t pool;
  uint64_t keep = UINT64_MAX, used = 1, high = 0;
  unsigned long long *total, result = 0, expected = 0;
  for (cudaStream_t& stream : streams) cudaStreamCreate(&stream);
  cudaDeviceGetDefaultMemPool(&pool, 0);
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  cudaMallocAsync(&total, sizeof *total, streams[0]);
  cudaMemsetAsync(total, 0, sizeof *total, streams[0]);
  cudaStreamSynchronize(streams[0]);
  for (int round = 1; round <= kRounds; ++round) {
    const cudaStream_t stream = streams[round % 2];
    int* values;
    cudaMallocAsync(&values, kCount * sizeof(int), stream);
    fill<<<kCount / 256, 256, 0, stream>>>(values, round);
    sum<<<kCount / 256, 256, 0, stream>>>(values, total);
    cudaFreeAsync(values, stream);
    expected += static_cast<unsigned long long>(round) * kCount;
  }
  cudaDeviceSynchronize();
  cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost);
  cudaFreeAsync(total, streams[0]);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
  cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &high);
  const cudaError_t error = cudaGetLastError();
  const bool right = error == cudaSuccess && result == expected && used == 0 && high < 2 * kCount * sizeof(int) * 2;
  std::printf("%s: sum %llu of %llu, %llu bytes used, %llu reserved at most: %s\n", right ? "PASS" : "FAIL", result,
              expected, static_cast<unsigned long long>(used), static_cast<unsigned long long>(high),
              cudaGetErrorString(error));
  return right ? 0 : 1;
}
