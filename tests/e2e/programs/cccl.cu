// The toolkit's own C++ libraries (CCCL): thrust, cub and libcudacxx. Each part checks itself.

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cub/cub.cuh>
#include <cuda/std/functional>
#include <cuda/stream_ref>
#include <numeric>
#include <vector>

#include "check.h"

namespace {

constexpr int kCount = 20'000;

std::vector<unsigned> scrambled() {
  std::vector<unsigned> values(kCount);
  unsigned state = 1;
  for (unsigned& value : values) value = (state = state * 1664525u + 1013904223u) >> 8;
  return values;
}

bool thrust_works() {
  const std::vector<unsigned> host = scrambled();
  thrust::device_vector<unsigned> device(host.begin(), host.end());
  thrust::sort(device.begin(), device.end());
  std::vector<unsigned> sorted(kCount), expected = host;
  thrust::copy(device.begin(), device.end(), sorted.begin());
  std::sort(expected.begin(), expected.end());
  if (sorted != expected) return false;
  thrust::device_vector<int> numbers(kCount), squares(kCount);
  thrust::sequence(numbers.begin(), numbers.end());
  thrust::transform(numbers.begin(), numbers.end(), squares.begin(),
                    [] __device__(int x) { return x % 100 * (x % 100); });
  long long sum = 0;
  for (int i = 0; i < kCount; ++i) sum += i % 100 * (i % 100);
  return thrust::reduce(squares.begin(), squares.end(), 0ll) == sum;
}

// cub asks how much it needs first.
template <class Call>
void with_temporary(cudaStream_t stream, Call&& call) {
  size_t bytes = 0;
  void* memory = nullptr;
  CHECK(call(nullptr, bytes));
  CHECK(cudaMallocAsync(&memory, bytes, stream));
  CHECK(call(memory, bytes));
  CHECK(cudaFreeAsync(memory, stream));
}

bool cub_works() {
  const std::vector<unsigned> host = scrambled();
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  unsigned *in, *out;
  CHECK(cudaMalloc(&in, kCount * sizeof *in));
  CHECK(cudaMalloc(&out, kCount * sizeof *out));
  CHECK(cudaMemcpy(in, host.data(), kCount * sizeof *in, cudaMemcpyHostToDevice));
  std::vector<unsigned> result(kCount), expected = host;

  with_temporary(stream, [&](void* memory, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, in, out, kCount, 0, 32, stream);
  });
  CHECK(cudaMemcpyAsync(result.data(), out, kCount * sizeof *out, cudaMemcpyDeviceToHost, stream));
  cuda::stream_ref(stream).wait();
  std::sort(expected.begin(), expected.end());
  bool right = result == expected;

  with_temporary(stream, [&](void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, kCount, stream);
  });
  CHECK(cudaMemcpyAsync(result.data(), out, kCount * sizeof *out, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  std::partial_sum(host.begin(), host.end(), expected.begin());
  right = right && result == expected;

  with_temporary(stream, [&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::Max(memory, bytes, in, out, kCount, stream);
  });
  unsigned largest = 0;
  CHECK(cudaMemcpyAsync(&largest, out, sizeof largest, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  right = right && largest == *std::max_element(host.begin(), host.end()) && cuda::stream_ref(stream).ready();
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaStreamDestroy(stream));
  return right;
}

}  // namespace

int main() {
  const bool sorted = thrust_works(), scanned = cub_works();
  if (!sorted) std::puts("thrust: wrong");
  if (!scanned) std::puts("cub: wrong");
  if (sorted && scanned) std::puts("PASS");
}
