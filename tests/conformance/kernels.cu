// The kernels of the conformance suite. kernels.ptx is this file as nvcc translates it, kept beside it so that the
// suite runs without nvcc: nvcc -ptx -arch=compute_75 kernels.cu, comments removed.

#include <cassert>
#include <cstdio>

__device__ int counter = 41;
__device__ int untouched[4];
__device__ int* pointer_to_counter = &counter;
__constant__ float factors[3] = {0.5f, 2.0f, -1.0f};

extern "C" {

__global__ void add(const float* a, const float* b, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}

// Where each thread stands: blocks are numbered along x, then y, then z.
__global__ void positions(unsigned* out) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * threads + thread;
}

// Adds up a block's slice of `in` in dynamic shared memory.
__global__ void block_sums(const int* in, int* sums) {
  extern __shared__ int partial[];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

// Multiplies a value by 3 and adds 1, so often: the order of launches shows in the result, and they take a while.
__global__ void step_value(unsigned* value, int times) {
  unsigned v = *value;
  for (int i = 0; i < times; ++i) v = v * 3 + 1;
  *value = v;
}

// Keeps every thread of every block busy for so many rounds; every block does the same.
__global__ void work(unsigned* out, int rounds) {
  unsigned v = threadIdx.x;
  for (int i = 0; i < rounds; ++i) v = v * 5 + 3;
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void copy_value(const unsigned* from, unsigned* to) {
  *to = *from;
}

__global__ void count_up(int by) {
  atomicAdd(pointer_to_counter, by);
}

__global__ void apply_factors(float* out) {
  if (threadIdx.x < 3) out[threadIdx.x] = factors[threadIdx.x] * 10.0f;
}

// The first block waits for what the last one writes.
__global__ void wait_for_last_block(int* flag, int* out) {
  if (blockIdx.x == gridDim.x - 1) atomicExch(flag, 1);
  if (blockIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    *out = 7;
  }
}

// Every block waits until all have arrived.
__global__ void meet(unsigned* arrived, unsigned* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {
    }
    atomicAdd(out, 1);
  }
}

__global__ void wait_for_flag(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}
__global__ void raise_flag(int* flag) {
  atomicExch(flag, 1);
}

__global__ void print_thread(int number) {
  printf("number %d, thread %d\n", number, static_cast<int>(threadIdx.x));
}

__global__ void write_to(int* address) {
  *address = 1;
}
__global__ void stop() {
  asm volatile("trap;");
}
__global__ void assert_positive(int value) {
  assert(value > 0);
}

// Textures and surfaces: what each thread finds at its place.
__global__ void sample(cudaTextureObject_t texture, float x, float y, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, x + threadIdx.x, y);
}

__global__ void fetch(cudaTextureObject_t texture, int first, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, first + static_cast<int>(threadIdx.x));
}

__global__ void write_surface(cudaSurfaceObject_t surface, float add) {
  float value;
  surf2Dread(&value, surface, threadIdx.x * 4, threadIdx.y);
  surf2Dwrite(value + add, surface, threadIdx.x * 4, threadIdx.y);
}
}
