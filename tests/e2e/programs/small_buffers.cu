// Small buffers that share pieces of memory, come and go, and are updated in place on two streams, through pointers to
// where they begin, end, or would begin if their elements were counted from 1. A buffer's numbers are known on the
// host. Prints PASS and what they add up to.
//
// Usage: small_buffers STEPS
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "check.h"

constexpr int kStreams = 2, kBuffers = 16, kThreads = 128;

__global__ void set(unsigned* numbers, unsigned count, unsigned value) {
  for (unsigned i = threadIdx.x; i < count; i += kThreads) numbers[i] = value + i;
}
__global__ void add(unsigned* numbers, unsigned count, unsigned value) {
  for (unsigned i = threadIdx.x; i < count; i += kThreads) numbers[i] = numbers[i] * 3 + value;
}
__global__ void add_before(unsigned* end, unsigned count, unsigned value) {
  for (unsigned i = threadIdx.x; i < count; i += kThreads) *(end - 1 - i) = *(end - 1 - i) * 3 + value;
}
__global__ void add_from_1(unsigned* numbers, unsigned count, unsigned value) {
  for (unsigned i = threadIdx.x + 1; i <= count; i += kThreads) numbers[i] = numbers[i] * 3 + value;
}
__global__ void mix(unsigned* to, unsigned to_count, const unsigned* from, unsigned from_count) {
  for (unsigned i = threadIdx.x; i < to_count; i += kThreads) to[i] ^= from[i % from_count];
}

struct Buffer {
  unsigned* device = nullptr;
  std::vector<unsigned> host;
  bool pooled = false;
  cudaStream_t stream = nullptr;
};

void allocate(Buffer& buffer, std::mt19937& random) {
  // Most end where their alignment does, so that another one may begin there.
  const unsigned count = random() % 4 != 0 ? 128 * (1 + random() % 40) : 1 + random() % 5000;
  const size_t bytes = count * sizeof(unsigned);
  buffer.pooled = random() % 2 != 0;
  CHECK(buffer.pooled ? cudaMallocAsync(&buffer.device, bytes, buffer.stream) : cudaMalloc(&buffer.device, bytes));
  const unsigned value = random();
  set<<<1, kThreads, 0, buffer.stream>>>(buffer.device, count, value);
  buffer.host.resize(count);
  for (unsigned i = 0; i < count; ++i) buffer.host[i] = value + i;
}

void update(Buffer& buffer, std::mt19937& random) {
  const auto count = static_cast<unsigned>(buffer.host.size());
  const unsigned value = random();
  switch (random() % 3) {
    case 0:
      add<<<1, kThreads, 0, buffer.stream>>>(buffer.device, count, value);
      break;
    case 1:
      add_before<<<1, kThreads, 0, buffer.stream>>>(buffer.device + count, count, value);
      break;
    default:
      add_from_1<<<1, kThreads, 0, buffer.stream>>>(buffer.device - 1, count, value);
  }
  for (unsigned& number : buffer.host) number = number * 3 + value;
}

void mix_in(Buffer& to, const Buffer& from) {
  mix<<<1, kThreads, 0, to.stream>>>(to.device, static_cast<unsigned>(to.host.size()), from.device,
                                     static_cast<unsigned>(from.host.size()));
  for (size_t i = 0; i < to.host.size(); ++i) to.host[i] ^= from.host[i % from.host.size()];
}

unsigned right(const Buffer& buffer) {
  std::vector<unsigned> numbers(buffer.host.size());
  CHECK(cudaMemcpyAsync(numbers.data(), buffer.device, numbers.size() * sizeof(unsigned), cudaMemcpyDeviceToHost,
                        buffer.stream));
  CHECK(cudaStreamSynchronize(buffer.stream));
  unsigned sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    sum = sum * 31 + numbers[i];
    if (numbers[i] == buffer.host[i]) continue;
    std::printf("number %zu of %zu is %u, not %u\n", i, numbers.size(), numbers[i], buffer.host[i]);
    std::exit(1);
  }
  return sum;
}

void release(Buffer& buffer) {
  CHECK(buffer.pooled ? cudaFreeAsync(buffer.device, buffer.stream) : cudaFree(buffer.device));
}

int main(int, char** arguments) {
  std::mt19937 random(7);
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<Buffer> buffers(kBuffers);
  for (int i = 0; i < kBuffers; ++i) {
    buffers[i].stream = streams[i % kStreams];
    allocate(buffers[i], random);
  }
  unsigned sum = 0;
  for (int step = std::atoi(arguments[1]); step > 0; --step) {
    const unsigned which = random() % kBuffers;
    Buffer& buffer = buffers[which];
    const unsigned what = random() % 20;
    if (what == 0) {
      sum += right(buffer);
      release(buffer);
      allocate(buffer, random);
    } else if (what < 8) {
      mix_in(buffer, buffers[(which + kStreams) % kBuffers]);
    } else {
      update(buffer, random);
    }
  }
  for (Buffer& buffer : buffers) sum += right(buffer);
  for (Buffer& buffer : buffers) release(buffer);
  CHECK(cudaDeviceSynchronize());
  std::printf("PASS: %u\n", sum);
  return 0;
}
