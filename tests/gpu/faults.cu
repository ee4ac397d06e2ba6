// One fault of a kind, or a kernel without end, or a neighbour that works and checks what it computes.
// Usage: faults address|assert|trap|misaligned   prints the monotonic clock's seconds before the launch, then the
//                                                fault's code, and ends with status 3
//        faults endless                          a kernel that ends with its process
//        faults work SECONDS [pinned]            PASS, or the code of what stopped it and status 4; `pinned`: its
//                                                kernels update pinned memory, and so cannot be run again

#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

__global__ void address(int* at) {
  at[(1ll << 40) + threadIdx.x] = 1;
}
__global__ void assertion(int* at) {
  assert(at == nullptr && "a fault on purpose");
}
__global__ void trap(int*) {
  __trap();
}
__global__ void misaligned(int* at) {
  *reinterpret_cast<volatile int*>(reinterpret_cast<char*>(at) + 1) = 1;
}
__global__ void endless(volatile int* at) {
  while (at[0] == 0) {
  }
}
__global__ void add(unsigned* at, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) at[i] += i;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int stopped(cudaError_t error, int status) {
  std::printf("faults: %d %s: %s\n", static_cast<int>(error), cudaGetErrorName(error), cudaGetErrorString(error));
  return status;
}

int fault(void (*kernel)(int*)) {
  int* at = nullptr;
  if (cudaError_t error = cudaMalloc(&at, 4096)) return stopped(error, 1);
  std::printf("faults: at %.6f\n", now());
  kernel<<<1, 32>>>(at);
  const cudaError_t error = cudaDeviceSynchronize();
  return stopped(error, error == cudaSuccess ? 0 : 3);
}

int work(double seconds, bool pinned) {
  constexpr unsigned kCount = 1 << 20;
  unsigned* at = nullptr;
  std::vector<unsigned> seen(kCount);
  const size_t bytes = kCount * sizeof *at;
  if (cudaError_t error = pinned ? cudaMallocHost(&at, bytes) : cudaMalloc(&at, bytes)) return stopped(error, 4);
  if (cudaError_t error = cudaMemset(at, 0, bytes)) return stopped(error, 4);
  unsigned rounds = 0;
  for (const double end = now() + seconds; now() < end; rounds += 16) {
    for (int i = 0; i < 16; ++i) add<<<kCount / 256, 256>>>(at, kCount);
    if (cudaError_t error = cudaDeviceSynchronize()) return stopped(error, 4);
  }
  if (cudaError_t error = cudaMemcpy(seen.data(), at, bytes, cudaMemcpyDefault)) return stopped(error, 4);
  for (unsigned i = 0; i < kCount; ++i) {
    if (seen[i] == i * rounds) continue;
    std::printf("faults: WRONG at %u\n", i);
    return 5;
  }
  std::printf("faults: %u rounds: PASS\n", rounds);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (!std::strcmp(what, "address")) return fault(address);
  if (!std::strcmp(what, "assert")) return fault(assertion);
  if (!std::strcmp(what, "trap")) return fault(trap);
  if (!std::strcmp(what, "misaligned")) return fault(misaligned);
  if (!std::strcmp(what, "work") && (count == 3 || (count == 4 && !std::strcmp(words[3], "pinned"))))
    return work(std::atof(words[2]), count == 4);
  if (!std::strcmp(what, "endless")) {
    int* at = nullptr;
    if (cudaError_t error = cudaMalloc(&at, 4096)) return stopped(error, 1);
    if (cudaError_t error = cudaMemset(at, 0, 4096)) return stopped(error, 1);
    endless<<<1, 32>>>(at);
    return stopped(cudaDeviceSynchronize(), 3);
  }
  std::fprintf(stderr, "usage: faults address|assert|trap|misaligned|endless | work SECONDS [pinned]\n");
  return 64;
}
