// The toolkit's own C++ libraries (CCCL): thrust, cub, and of libcudacxx what calls the driver, where the toolkit's
// has that (from 3.1 on). Each part checks itself.

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <algorithm>
#include <cub/cub.cuh>
#if __has_include(<cuda/devices>) && __has_include(<cuda/buffer>)
#define HEDDLE_CUDA_CPP
#include <cuda/algorithm>
#include <cuda/buffer>
#include <cuda/devices>
#include <cuda/memory_pool>
#include <cuda/stream>
#endif
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
  CHECK(cudaStreamSynchronize(stream));
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
  right = right && largest == *std::max_element(host.begin(), host.end());
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaStreamDestroy(stream));
  return right;
}

#ifdef HEDDLE_CUDA_CPP
__global__ void doubles(int* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= 2;
}

// Streams and events of libcudacxx, in a thread that has no current context.
bool objects_work() {
  const cuda::device_ref device = cuda::devices[0];
  if (device.attribute(cuda::device_attributes::multiprocessor_count) <= 0 || device.name().empty()) return false;
  cuda::stream stream{device};
  const cuda::timed_event start = stream.record_timed_event();
  auto buffer = cuda::make_buffer<int>(stream, cuda::device_default_memory_pool(device), kCount, 21);
  doubles<<<(kCount + 255) / 256, 256, 0, stream.get()>>>(buffer.data(), kCount);
  const cuda::timed_event end = stream.record_timed_event();
  std::vector<int> host(kCount);
  cuda::copy_bytes(stream, buffer, host);
  cuda::stream other{cuda::devices[cuda::devices.size() - 1]};
  other.wait(stream);
  other.sync();
  stream.sync();
  return std::all_of(host.begin(), host.end(), [](int value) { return value == 42; }) && (end - start).count() >= 0;
}
#else
bool objects_work() {
  return true;
}
#endif

}  // namespace

int main() {
  bool right = true;
  const auto expect = [&](const char* what, bool works) {
    if (!works) std::printf("%s: wrong\n", what);
    right = right && works;
  };
  expect("libcudacxx", objects_work());
  expect("thrust", thrust_works());
  expect("cub", cub_works());
  if (right) std::puts("PASS");
}
