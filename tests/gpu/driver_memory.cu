// What the driver takes of the device's memory for a program, beside what the program asks for: local memory of
// resident threads, module variables, the kernels' heap, the buffer of printf, workspaces of libraries. Each step runs
// in a process of its own, which tells what cudaMemGetInfo lost by it. Usage: driver_memory STEP [NUMBER]; without
// arguments: the steps.
//
// Under heddle the same numbers are what the program is charged: a step must not come to less there than natively. But
// for `start`, the first launch: of that a variable of 256 MiB is the program's, and the rest comes with a context.
// `heap` is counted from there too, because heddle charges it with the module.

#include <cublas_v2.h>
#include <curand.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr size_t kVariableBytes = size_t{256} << 20;
__device__ char large_variable[kVariableBytes];

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("FAIL %s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

size_t free_bytes() {
  size_t left = 0, all = 0;
  check(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
  return left;
}

__global__ void nothing() {}

__global__ void touch_variable(size_t at) {
  large_variable[at % kVariableBytes] = 1;
}  // keeps it

// Its array is too large for registers, and is indexed by what is known at run time only.
template <int Words>
__global__ void local_words(int* out, int at) {
  volatile int words[Words];
  for (int i = 0; i < Words; i += 7) words[(i + at) % Words] = i + at;
  if (out) out[threadIdx.x] = words[at % Words];
}

__global__ void allocate(int bytes) {
  void* piece = malloc(bytes);
  if (piece) *static_cast<volatile char*>(piece) = 1;
  free(piece);
}

__global__ void print(int at) {
  if (at == 1) printf("said by the device\n");
}

__device__ int deeper(int depth, int* out) {
  volatile int words[64];
  words[depth % 64] = depth;
  if (depth == 0) return words[0];
  return deeper(depth - 1, out) + words[depth % 64];
}
__global__ void recursive(int depth, int* out) {
  const int sum = deeper(depth, out);
  if (out) *out = sum;
}

void synchronize() {
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

template <int Words>
void local(int blocks) {
  local_words<Words><<<blocks, 64>>>(nullptr, 3);
  synchronize();
}

void run_local(long bytes) {
  switch (bytes) {
    case 256:
      return local<64>(1);
    case 512:
      return local<128>(1);
    case 1024:
      return local<256>(1);
    case 4096:
      return local<1024>(1);
    case 16384:
      return local<4096>(1);
    case 65536:
      return local<16384>(1);
    default:
      check(cudaErrorInvalidValue, "local takes 256, 512, 1024, 4096, 16384 or 65536");
  }
}

void run_library(const char* which) {
  if (!std::strcmp(which, "curand")) {
    curandGenerator_t generator;
    if (curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_XORWOW) != CURAND_STATUS_SUCCESS) std::exit(2);
    static float* numbers;
    check(cudaMalloc(&numbers, 2 << 20), "cudaMalloc");
    if (curandGenerateUniform(generator, numbers, 1000) != CURAND_STATUS_SUCCESS) std::exit(2);
    return synchronize();
  }
  cublasHandle_t handle;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) std::exit(2);
  if (!std::strcmp(which, "cublas-handle")) return synchronize();
  const int n = 1024;
  float *a, one = 1, zero = 0;
  check(cudaMalloc(&a, size_t{n} * n * sizeof(float) * 3), "cudaMalloc");
  check(cudaMemset(a, 0, size_t{n} * n * sizeof(float) * 3), "cudaMemset");
  float *b = a + n * n, *c = b + n * n;
  if (cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n) != CUBLAS_STATUS_SUCCESS)
    std::exit(2);
  synchronize();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::puts(
        "start | local BYTES | stack BYTES | stack-limit BYTES | heap MIB | print MIB | pending COUNT | streams COUNT "
        "| "
        "cublas-handle | cublas | curand");
    return 64;
  }
  const char* step = argv[1];
  const long number = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0;
  check(cudaFree(nullptr), "cudaFree");
  if (!std::strcmp(step, "heap") && number)  // before the module's first kernel, which may use it
    check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, size_t(number) << 20), "cudaLimitMallocHeapSize");
  if (!std::strcmp(step, "print") && number)
    check(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, size_t(number) << 20), "cudaLimitPrintfFifoSize");
  const size_t before_module = free_bytes();
  nothing<<<1, 1>>>();
  synchronize();
  size_t before = free_bytes();
  if (!std::strcmp(step, "start") || !std::strcmp(step, "heap")) before = before_module;
  if (!std::strcmp(step, "local"))
    run_local(number);
  else if (!std::strcmp(step, "stack")) {
    check(cudaDeviceSetLimit(cudaLimitStackSize, number), "cudaLimitStackSize");
    recursive<<<1, 32>>>(2, nullptr);
  } else if (!std::strcmp(step, "stack-limit")) {
    check(cudaDeviceSetLimit(cudaLimitStackSize, number), "cudaLimitStackSize");
    nothing<<<1, 1>>>();
  } else if (!std::strcmp(step, "heap")) {
    allocate<<<1, 1>>>(64);
  } else if (!std::strcmp(step, "print")) {
    print<<<1, 1>>>(1);
  } else if (!std::strcmp(step, "pending")) {
    check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, number), "cudaLimitDevRuntimePendingLaunchCount");
    nothing<<<1, 1>>>();
  } else if (!std::strcmp(step, "streams")) {
    for (long i = 0; i < number; ++i) {
      cudaStream_t stream;
      check(cudaStreamCreate(&stream), "cudaStreamCreate");
      nothing<<<1, 1, 0, stream>>>();
    }
  } else if (std::strcmp(step, "start") != 0) {
    run_library(step);
  }
  synchronize();
  std::printf("%s %ld: %.1f MiB\n", step, number,
              static_cast<double>(static_cast<long long>(before - free_bytes())) / (1 << 20));
  return 0;
}
