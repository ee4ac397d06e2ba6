// Kernels for nvcc_test.cc: one for each thing that CUDA C++ turns into more than arithmetic.

#include <cassert>
#include <cstdio>

struct Pair {
  int a;
  double b;
  float* c;
};

__constant__ float scale[4] = {1, 2, 3, 4};
__device__ int counter;
__device__ float values[3] = {1.5f, 2.5f, 3.5f};
__device__ float* pointers[2] = {values, values + 1};

extern "C" {

__global__ void scale_and_count(const float* a, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = a[i] * scale[i & 3] + pointers[i & 1][1];
  if (i % 7 == 0) atomicAdd(&counter, 1);
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void recursion(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

__device__ __noinline__ Pair scaled(Pair p, int by) {
  p.a += by;
  p.b *= by;
  p.c += by;
  return p;
}
__global__ void structs(Pair p, Pair* out) {
  out[threadIdx.x] = scaled(p, threadIdx.x);
}

__global__ void print(int n, const char* text) {
  if (threadIdx.x < n) printf("thread %d: %f %s %c %ld %5.2f%%\n", threadIdx.x, 1.5 * n, text, 'c', 5L, 3.25f);
}
__global__ void check(int n) {
  assert(threadIdx.x < n);
}

__global__ void block_sum(const float* in, float* out, int n) {
  extern __shared__ float partial[];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = t; i < n; i += blockDim.x) sum += in[i];
  partial[t] = sum;
  __syncthreads();
  for (int d = blockDim.x / 2; d >= 32; d >>= 1) {
    if (t < d) partial[t] += partial[t + d];
    __syncthreads();
  }
  if (t >= 32) return;
  sum = partial[t];
  for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (t == 0) *out = sum;
}

__global__ void local_array(int* out, int k) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i * k & 15] = i * k;
  int sum = 0;
  for (int i = 0; i < 16; i++) sum += a[i + threadIdx.x & 15] * i;
  out[threadIdx.x] = sum;
}

__global__ void functions(const float* f, const double* d, float* f_out, double* d_out) {
  int i = threadIdx.x;
  float x = f[i];
  f_out[i] = sqrtf(x) + expf(-x) + sinf(x) + logf(x) + powf(x, 1.5f) + x / 7.f;
  double y = d[i];
  d_out[i] = sqrt(y) + exp(-y) + log(y) + pow(y, 1.7) + y / 7.0 + tan(y) + (long long)y;
}

__global__ void votes(unsigned* out, int n) {
  int t = threadIdx.x;
  unsigned sum = __ballot_sync(~0u, t & n);
  if (t < n) sum += __popc(__activemask());
  sum += __any_sync(~0u, t == 3) * 1000 + __all_sync(~0u, t < 40) * 100 + __syncthreads_count(t < n);
  out[t] = sum;
}

__global__ void cases(int* out, int n) {
  int t = threadIdx.x;
  switch (t % 9) {
    case 0:
      out[t] = n;
      break;
    case 1:
      out[t] = n * 3;
      break;
    case 2:
      out[t] ^= n;
      break;
    case 3:
      out[t] = n / t;
      break;
    case 4:
      out[t] = n % t;
      break;
    case 5:
      out[t] <<= n & 7;
      break;
    case 6:
      out[t] = -t;
      break;
    case 7:
      out[t] = t * t;
      break;
    default:
      out[t] = 0;
  }
}

__global__ void narrow(unsigned char* c, short* s, char4* q) {
  int t = threadIdx.x;
  c[t] = c[t] * 3 + 1;
  s[t] = s[t] / 3 - c[t];
  char4 x = q[t];
  x.x += x.y;
  x.w = x.z >> 1;
  q[t] = x;
}

// Every thread takes the same lock, also those of one warp.
__global__ void locked(int* lock, int* value) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)value = *(volatile int*)value + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}

// Groups of lanes that form as they come, as aggregated atomics do.
__global__ void aggregated(int* count, const int* keys) {
  int t = threadIdx.x;
  for (int round = 0; round < keys[t] % 5; ++round) {
    unsigned mask = __activemask();
    int leader = __ffs(mask) - 1;
    int lane = t & 31;
    int base = 0;
    if (lane == leader) base = atomicAdd(count, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    if (base < 0) count[1] = 1;
  }
}

// The halves of a warp work apart and meet.
__global__ void halves(int* out) {
  __shared__ int box[64];
  int t = threadIdx.x;
  if (t % 2) {
    box[t] = t;
    __syncwarp();
    out[t] = box[t ^ 1];
  } else {
    box[t] = 100 + t;
    for (int i = 0; i < t; ++i) box[t] += 1;
    __syncwarp();
    out[t] = box[t ^ 1];
  }
}

__global__ void strided_average(const float* in, float* out, int width) {
  __shared__ float tile[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * width + x];
  __syncthreads();
  out[x * width + y] = tile[y][x] * 0.5f;
}

}  // extern "C"
