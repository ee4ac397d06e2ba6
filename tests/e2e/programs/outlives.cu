// Steps with waits in between, in which the test kills what it likes. What each step finds is printed; an undisturbed
// run prints the same. Between the steps everything that CUDA has is in use: memory that is updated in place, pinned
// and managed memory, variables and constants whose addresses are out, streams, events, a texture, a host function,
// printf.
//
// Usage: outlives DIRECTORY STEPS [device] [names]: step n begins when DIRECTORY/n is there. `device`: no host memory
// for kernels. `names`: variables by their names only, so that nobody knows their addresses.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 12;

__device__ unsigned counter = 100;
__device__ float* remembered;  // an address that only the device has
__constant__ unsigned table[64];
__device__ unsigned never_written[3] = {7, 8, 9};

__global__ void remember(float* numbers) {
  remembered = numbers;
}

__global__ void step(float* numbers, unsigned* seen, unsigned* by_address, float* pinned) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  numbers[i] = numbers[i] * 1.5f + static_cast<float>(table[i % 64]);
  remembered[i] += 1;
  if (i != 0) return;
  counter += 1;
  *by_address += 10;
  seen[0] = counter;
  seen[1] = table[3];
  seen[2] = never_written[1];
  pinned[0] += 2;
  std::printf("kernel: counter %u\n", counter);
}

__global__ void fetch(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, static_cast<int>(threadIdx.x) * 7);
}

void wait_for(const std::string& path) {
  while (access(path.c_str(), F_OK) != 0) usleep(2000);
}

int main(int count, char** arguments) {
  const std::string directory = arguments[1];
  const int steps = std::atoi(arguments[2]);
  bool device = false, names = false;
  for (const std::string& option : std::vector<std::string>(arguments + 3, arguments + count)) {
    device |= option == "device";
    names |= option == "names";
  }
  float *numbers, *out, *pinned;
  unsigned *seen, *address, *managed;
  CHECK(cudaMalloc(&numbers, kCount * sizeof(float)));
  CHECK(cudaMalloc(&out, 32 * sizeof(float)));
  CHECK(cudaMalloc(&seen, 4 * sizeof(unsigned)));
  CHECK(device ? cudaMalloc(&pinned, 4096) : cudaMallocHost(&pinned, 4096));
  CHECK(cudaMallocManaged(&managed, 4096));
  CHECK(cudaMemset(pinned, 0, 4096));
  CHECK(cudaMemset(numbers, 0, kCount * sizeof(float)));
  unsigned values[64];
  for (unsigned i = 0; i < 64; ++i) values[i] = i * i;
  CHECK(cudaMemcpyToSymbol(table, values, sizeof values));
  if (names) {
    CHECK(cudaMalloc(&address, sizeof(unsigned)));
    CHECK(cudaMemset(address, 0, sizeof(unsigned)));
  } else {
    CHECK(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), counter));
  }
  managed[0] = 5;
  remember<<<1, 1>>>(numbers);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = numbers;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = kCount * sizeof(float);
  cudaTextureDesc how{};
  how.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
  cudaEvent_t start, end;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaDeviceSynchronize());
  int called = 0;
  for (int n = 1; n <= steps; ++n) {
    std::printf("step %d\n", n);
    std::fflush(stdout);
    wait_for(directory + "/" + std::to_string(n));
    if (n == 2) {
      values[3] = 77;
      CHECK(cudaMemcpyToSymbol(table, &values[3], sizeof(unsigned), 3 * sizeof(unsigned)));
    }
    CHECK(cudaStreamWaitEvent(stream, start, 0));
    step<<<kCount / 256, 256, 0, stream>>>(numbers, seen, address, pinned);
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaLaunchHostFunc(
        stream, [](void* count) { ++*static_cast<int*>(count); }, &called));
    CHECK(cudaStreamSynchronize(stream));
    fetch<<<1, 32>>>(texture, out);
    unsigned host_seen[4];
    float host_out[32], host_numbers[3], elapsed = -1;
    CHECK(cudaMemcpy(host_seen, seen, sizeof host_seen, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(host_out, out, sizeof host_out, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(host_numbers, numbers + 100, sizeof host_numbers, cudaMemcpyDeviceToHost));
    CHECK(cudaEventElapsedTime(&elapsed, start, end));
    float host_pinned = -1;
    CHECK(cudaMemcpy(&host_pinned, pinned, sizeof host_pinned, cudaMemcpyDefault));
    unsigned counter_now = 0;
    CHECK(cudaMemcpyFromSymbol(&counter_now, counter, sizeof counter_now));
    managed[0] += 1;
    std::printf("seen %u %u %u, counter %u, called %d, out %g, numbers %g %g, pinned %g, managed %u, elapsed %d\n",
                host_seen[0], host_seen[1], host_seen[2], counter_now, called, host_out[31], host_numbers[0],
                host_numbers[2], host_pinned, managed[0], elapsed > 0);
  }
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFree(numbers));
  std::printf("PASS\n");
  return 0;
}
