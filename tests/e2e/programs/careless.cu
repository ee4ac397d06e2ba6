// Kernels with the mistakes that `heddle run --check` finds, and the same kernels mended. Argument: which.

#include <cstdio>
#include <cstring>

constexpr int kThreads = 64;

__global__ void race(int* out) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  const int other = tile[kThreads - 1 - threadIdx.x];
  tile[threadIdx.x] = 2 * other;  // RACE: others may not have read yet
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void mended(int* out) {
  __shared__ int tile[kThreads];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  const int other = tile[kThreads - 1 - threadIdx.x];
  __syncthreads();
  tile[threadIdx.x] = 2 * other;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void shared_read(int* out) {
  __shared__ int tile[kThreads];
  if (threadIdx.x < kThreads / 2) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // SHARED
}

__global__ void local_read(int* out, int written, int read) {
  int own[16];
  for (int i = 0; i < written; ++i) own[i] = i;
  out[threadIdx.x] = own[read];  // LOCAL
}

__global__ void global_read(int* out, const int* in) {
  out[threadIdx.x] = in[threadIdx.x];  // GLOBAL
}

__global__ void stray_write(int* out, size_t distance) {
  out[distance] = 1;  // STRAY WRITE
}

__global__ void stray_read(int* out, const int* in, size_t distance) {
  out[0] = in[0] + out[distance];  // STRAY READ
}

int main(int, char** arguments) {
  const auto is = [&](const char* name) { return std::strcmp(arguments[1], name) == 0; };
  int *out, *in;
  constexpr size_t kBytes = size_t{4} << 20;  // too large to lie in one piece of memory with others
  cudaMalloc(&out, kBytes);
  cudaMalloc(&in, kBytes);
  // Several times: a mistake is told once.
  for (int i = 0; i < 3; ++i) {
    if (is("race")) race<<<2, kThreads>>>(out);
    if (is("mended")) mended<<<2, kThreads>>>(out);
    if (is("shared")) shared_read<<<2, kThreads>>>(out);
    if (is("local")) local_read<<<2, kThreads>>>(out, 4, 8);
    if (is("global")) global_read<<<2, kThreads>>>(out, in);
  }
  if (is("stray_write") || is("stray_read")) {
    int* other;
    cudaMalloc(&other, kBytes);
    for (int* buffer : {out, in, other}) cudaMemset(buffer, 0, kBytes);
    if (is("stray_write")) stray_write<<<1, 1>>>(out, other - out);
    if (is("stray_read")) stray_read<<<1, 1>>>(out, in, other - out);
  }
  if (is("filled") || is("copied")) {
    const int zeros[kThreads] = {};
    if (is("filled")) cudaMemset(in, 0, sizeof zeros);
    if (is("copied")) cudaMemcpy(in, zeros, sizeof zeros, cudaMemcpyHostToDevice);
    global_read<<<2, kThreads>>>(out, in);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
