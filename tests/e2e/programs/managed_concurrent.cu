// Managed memory that the host and a kernel use at the same time, which a device with concurrentManagedAccess serves.
//
//   managed_concurrent flag|counter|prefetch|turns
//     flag      a kernel waits until the host has written a flag
//     counter   the host waits until a kernel has counted, and then tells the kernel to end
//     prefetch  as flag, but the host prefetches what it writes first
//     turns     for comparison: the host waits for the kernel before it reads
#include <cstdio>
#include <cstring>

namespace {

__global__ void await_flag(volatile unsigned* flag, volatile unsigned* answer) {
  while (*flag == 0) continue;
  *answer = *flag + 1;
}

__global__ void count_until(volatile unsigned* end, volatile unsigned* counter) {
  while (*end == 0) *counter = *counter + 1;
}

bool check(cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

bool flag(volatile unsigned* memory) {
  await_flag<<<1, 1>>>(memory, memory + 1);
  memory[0] = 41;
  return check(cudaDeviceSynchronize()) && memory[1] == 42;
}

bool prefetch(volatile unsigned* memory) {
  await_flag<<<1, 1>>>(memory, memory + 1);
  const cudaMemLocation host{cudaMemLocationTypeHost, 0};
  if (!check(cudaMemPrefetchAsync(const_cast<unsigned*>(memory), 4, host, 0, nullptr))) return false;
  memory[0] = 41;
  return check(cudaDeviceSynchronize()) && memory[1] == 42;
}

bool turns(volatile unsigned* memory) {
  memory[0] = 41;
  await_flag<<<1, 1>>>(memory, memory + 1);
  return check(cudaDeviceSynchronize()) && memory[1] == 42;
}

bool counter(volatile unsigned* memory) {
  count_until<<<1, 1>>>(memory, memory + 1);
  while (memory[1] < 1000) continue;
  memory[0] = 1;
  return check(cudaDeviceSynchronize()) && memory[1] >= 1000;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "flag";
  int concurrent = -1;
  unsigned* memory = nullptr;
  if (!check(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0)) ||
      !check(cudaMallocManaged(&memory, 2 * sizeof *memory)))
    return 2;
  std::printf("concurrentManagedAccess %d\n", concurrent);
  std::fflush(stdout);
  memory[0] = memory[1] = 0;
  const bool right = !std::strcmp(which, "flag")      ? flag(memory)
                     : !std::strcmp(which, "counter") ? counter(memory)
                     : !std::strcmp(which, "turns")   ? turns(memory)
                                                      : prefetch(memory);
  std::printf("managed_concurrent: %s\n", right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}
