// What the tests read back out of nvcc's output: every shape of signature, of shared memory and of variable.
#include <cstdio>

struct Small {
  int number;
  float real;
  char letter;
};
struct Arrays {
  double values[5];
  char tail[3];
};
struct __align__(16) Aligned {
  float4 vector;
  int number;
};
struct Huge {
  char bytes[20000];
};

__constant__ float coefficients[16];
__constant__ char odd[5];
__constant__ double pair[2];
__device__ int counter;
__device__ double table[100] = {1, 2, 3};
static __device__ unsigned char three_bytes[3] = {1, 2, 3};
__device__ const char* message = "braces }{ \" and // in a string";
__managed__ int managed_value = 4;

__shared__ double module_shared[33];
extern __shared__ float dynamic_shared[];

extern "C" __global__ void nothing() {}

__global__ void vecadd(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i] * coefficients[i & 15] + odd[i % 5] + pair[i & 1];
}

__global__ void by_value(Small small, Arrays arrays, char c, Aligned aligned, short s, double* out) {
  *out = small.number + small.real + small.letter + arrays.values[threadIdx.x % 5] + arrays.tail[2] + c +
         aligned.vector.x + aligned.number + s;
  atomicAdd(&counter, aligned.number);
}

__global__ void huge(const __grid_constant__ Huge huge, int i, float* out) {
  *out = huge.bytes[i];
}

template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads, 2) reversed(const T* __restrict__ in, T* out) {
  __shared__ T tile[kThreads];
  __shared__ T grid[kThreads][3];
  tile[threadIdx.x] = in[threadIdx.x];
  grid[threadIdx.x][1] = in[0];
  __syncthreads();
  out[threadIdx.x] = tile[kThreads - 1 - threadIdx.x] + grid[kThreads - 1 - threadIdx.x][1];
}
template __global__ void reversed<float, 128>(const float* __restrict__, float*);
template __global__ void reversed<double, 256>(const double* __restrict__, double*);

__global__ void dynamic(float* out) {
  dynamic_shared[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = dynamic_shared[31 - threadIdx.x];
}

__global__ void five_bytes(float* out) {
  __shared__ char bytes[5];
  bytes[threadIdx.x % 5] = *out;
  __syncthreads();
  out[threadIdx.x] = bytes[2];
}

__device__ __noinline__ float shared_inside(float x) {
  __shared__ float tile[100];
  tile[threadIdx.x] = x;
  __syncthreads();
  return tile[static_cast<int>(x)];
}
__device__ __noinline__ float shared_below(float x) {
  module_shared[threadIdx.x] = x;
  __syncthreads();
  return module_shared[static_cast<int>(x)] + shared_inside(x);
}
__global__ void through_calls(float* out) {
  *out = shared_below(*out);
}
__global__ void through_one_call(float* out) {
  *out = shared_inside(*out);
}

__global__ void stack(int* out, int n) {
  int values[200];
  for (int i = 0; i < n; i++) values[(i * 7 + n) % 200] = out[i];
  int sum = 0;
  for (int i = 0; i < n; i++) sum += values[out[i] % 200];
  *out = sum + static_cast<int>(table[n]) + three_bytes[n] + message[n] + managed_value;
  printf("%d\n", sum);
}
