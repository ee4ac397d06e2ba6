// One kernel for each class of work; native_loops.cc has the same work as plain loops.

extern "C" {

__global__ void dense(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i], y = 1;
#pragma unroll 1
  for (int step = 0; step < 64; ++step) y = y * x + 0.5f;
  out[i] = y;
}

__global__ void stream(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2 + 1;
}

__global__ void barriers(const float* in, float* out, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void shuffles(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < n ? in[i] : 0;
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(~0u, sum, by);
  if (threadIdx.x % 32 == 0) out[i / 32] = sum;
}

// Escape times: neighbouring threads leave the loop at different steps.
__global__ void divergent(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float c = in[i] * 0.5f, x = 0, y = 0;
  int step = 0;
  while (step < 64 && x * x + y * y < 4) {
    float next = x * x - y * y + c - 1;
    y = 2 * x * y + 0.3f;
    x = next;
    ++step;
  }
  out[i] = static_cast<float>(step);
}

__global__ void atomics(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(reinterpret_cast<int*>(out) + (__float_as_int(in[i]) >> 12 & 255), 1);
}

__global__ void tiles(const float* in, float* out, int n) {
  __shared__ float a[16][16], b[16][16];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, size = 256;
  int row = blockIdx.x / 16 * 16 + y, column = blockIdx.x % 16 * 16 + x;
  float sum = 0;
  for (int tile = 0; tile < size; tile += 16) {
    a[y][x] = in[row * size + tile + x];
    b[y][x] = in[(tile + y) * size + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  out[row * size + column] = sum;
}
}
