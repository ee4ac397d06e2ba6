// What effects.h tells of code that nvcc really makes.
#include <cooperative_groups.h>

#include <cstdio>

__device__ unsigned counter;
__device__ int flags[4];
__constant__ float factors[8];
__device__ int* shelf;

struct __attribute__((packed)) Packed {
  char letter;
  float* values;
};

struct Shape {
  __device__ virtual float area() const { return 0; }
};

extern "C" {
__global__ void scale(const float* __restrict__ in, float* __restrict__ out, size_t n) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < n) out[i] = in[i] * factors[i & 7];
}
__global__ void in_place(float* values, const int* indices) {
  values[indices[threadIdx.x]] += 1;
}
__global__ void count(const unsigned char* pixels, unsigned* levels) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[pixels[threadIdx.x]], 1u);
  __syncthreads();
  atomicAdd(&levels[threadIdx.x], own[threadIdx.x]);
}
__global__ void append(const int* in, int* list, unsigned* length) {
  if (in[threadIdx.x] > 0) list[atomicAdd(length, 1u)] = in[threadIdx.x];
}
__global__ void last_block(const float* in, float* partial, float* out) {
  __shared__ bool last;
  partial[blockIdx.x] = in[threadIdx.x];
  __threadfence();
  if (threadIdx.x == 0) last = atomicInc(&counter, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (last) *out = partial[0];
}
__global__ void wait_for_flag(int* out) {
  while (*const_cast<volatile int*>(&flags[1]) == 0) {
  }
  *out = 1;
}
__global__ void timed(long long* out) {
  *out = clock64();
}
__global__ void across_the_grid(float* values) {
  cooperative_groups::this_grid().sync();
  values[threadIdx.x] = 0;
}
__global__ void packed(Packed p) {
  p.values[threadIdx.x] = p.letter;
}
__global__ void put_on_shelf(int* values) {
  shelf = values;
}
__global__ void from_shelf() {
  shelf[threadIdx.x] = 0;
}
__global__ void give_away(unsigned** out) {
  *out = &counter;
}
__global__ void make_shape(Shape* out) {
  new (out) Shape;
}
__global__ void say(const char* text) {
  printf("%s\n", text);
}
__global__ void heap(int** out) {
  *out = static_cast<int*>(malloc(4));
}
}
