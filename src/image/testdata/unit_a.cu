// With unit_b.cu, a program of two separately compiled units.
extern __device__ float shared_helper(float);
extern __constant__ float factors[4];
__device__ int across;

__global__ void first(float* out) {
  *out = shared_helper(*out) + factors[1];
  across = 3;
}
