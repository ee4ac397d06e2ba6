// Kernels for nvcc_test.cc: one for each thing that CUDA C++ turns into more than arithmetic.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

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

__device__ float sum_of(float a, float b) {
  return a + b;
}
__device__ float difference_of(float a, float b) {
  return a - b;
}
__device__ float product_of(float a, float b) {
  return a * b;
}
__device__ float (*operations[3])(float, float) = {sum_of, difference_of, product_of};

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual int area() const = 0;
};
struct Square : Shape {
  int side;
  __device__ explicit Square(int s) : side(s) {}
  __device__ int area() const override { return side * side; }
};
struct Rectangle : Shape {
  int width, height;
  __device__ Rectangle(int w, int h) : width(w), height(h) {}
  __device__ int area() const override { return width * height; }
};

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

__global__ void through_pointers(const int* which, float* out) {
  int i = threadIdx.x;
  out[i] = operations[which[i]](static_cast<float>(i), 3.0f);
}

// Each thread makes a shape on the heap; one of every 16 keeps asking until the heap is exhausted.
__global__ void shapes_on_the_heap(int* out, int* pieces) {
  int i = threadIdx.x;
  Shape* shape = i % 3 ? static_cast<Shape*>(new Square(i)) : static_cast<Shape*>(new Rectangle(i, 2));
  out[i] = shape->area();
  delete shape;
  if (i % 16) return;
  void* last = nullptr;
  int count = 0;
  while (void* piece = malloc(1000)) {
    *static_cast<void**>(piece) = last;
    last = piece;
    ++count;
  }
  atomicAdd(pieces, count);
  while (last) {
    void* next = *static_cast<void**>(last);
    free(last);
    last = next;
  }
}

__global__ void half_arithmetic(const float* in, float* out) {
  int i = threadIdx.x;
  __half2 a = __floats2half2_rn(in[i], -in[i]), b = __float2half2_rn(0.5f);
  __half2 c = __hfma2(a, b, __hmul2(a, a));
  __nv_bfloat16 d = __float2bfloat16(in[i]);
  out[3 * i] = __low2float(c);
  out[3 * i + 1] = __half2float(__hmax(__high2half(c), __float2half(0.25f)));
  out[3 * i + 2] = __bfloat162float(d) + (__hlt(__low2half(a), __low2half(b)) ? 1000.0f : 0.0f);
}

// A tile comes in asynchronously while nothing else happens; the next thread's part is what each one reads.
__global__ void pipelined(const float4* in, float* out) {
  __shared__ float4 tile[64];
  int i = threadIdx.x;
  __pipeline_memcpy_async(&tile[i], &in[i], sizeof(float4), i == 7 ? 8 : 0);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  float4 got = tile[(i + 1) % 64];
  out[i] = got.x + got.y + got.z + got.w;
}

// c = a * b + c on 16 x 16 matrices, a by rows, b by columns; scaled element by element, as fragments may be.
__global__ void tensor_product(const __half* a, const __half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, b, 16);
  load_matrix_sync(sum, c, 16, mem_row_major);
  mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2;
  store_matrix_sync(c, sum, 16, mem_col_major);
}

__global__ void byte_product(const signed char* a, const signed char* b, int* c) {
  using namespace nvcuda::wmma;
  __shared__ int shared[8 * 40];
  fragment<matrix_a, 8, 32, 16, signed char, row_major> left;
  fragment<matrix_b, 8, 32, 16, signed char, row_major> right;
  fragment<accumulator, 8, 32, 16, int> sum;
  fill_fragment(sum, 5);
  load_matrix_sync(left, a, 16);
  load_matrix_sync(right, b, 32);
  mma_sync(sum, left, right, sum);
  store_matrix_sync(shared, sum, 40, mem_row_major);
  for (int i = threadIdx.x; i < 256; i += 32) c[i] = shared[i / 32 * 40 + i % 32];
}
}  // extern "C"
