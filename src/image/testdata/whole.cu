// A small program of one unit: what corpus/ holds compiled, and what the wrapper test registers.
__constant__ float factors[3];
__device__ int calls;

__global__ void alone(int* out, int value) {
  *out = value;
}

__global__ void __launch_bounds__(64) tiled(char lane, const float* in, float* out) {
  __shared__ float tile[10];
  tile[threadIdx.x % 10] = in[threadIdx.x] * factors[1];
  __syncthreads();
  out[lane] = tile[3];
  calls = 1;
}
