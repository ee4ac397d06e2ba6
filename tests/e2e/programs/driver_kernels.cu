// Kernels that programs of the driver API load at run time, as PTX and as a fat binary.

constexpr int kTile = 16;

__device__ int counter = 5;
__device__ float table[64];
__constant__ float offset = 0.5f;

struct Line {
  char tag;
  double slope;
  int start;
};

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

extern "C" __global__ void matrix_multiply(float* c, const float* a, const float* b, int width) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < width / kTile; ++tile) {
    left[threadIdx.y][threadIdx.x] = a[row * width + tile * kTile + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(tile * kTile + threadIdx.y) * width + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  c[row * width + column] = sum;
}

extern "C" __global__ void draw(Line line, float* to) {
  to[threadIdx.x] = static_cast<float>(line.start + line.slope * threadIdx.x) + offset;
}

extern "C" __global__ void count() {
  atomicAdd(&counter, 1);
  table[threadIdx.x] = static_cast<float>(threadIdx.x);
}

extern "C" __global__ void dynamic_shared(int* to) {
  extern __shared__ int words[];
  words[threadIdx.x] = threadIdx.x;
  __syncthreads();
  to[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void add_one(int* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] += 1;
}
