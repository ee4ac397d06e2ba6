// What nvcc makes of <<<...>>> and of a kernel, and the few declarations of the runtime that the shapes use, so that
// the tests need neither nvcc nor a toolkit.
#pragma once

#include <cstddef>
#include <cstdlib>

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned X = 1, unsigned Y = 1, unsigned Z = 1) : x(X), y(Y), z(Z) {}
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

extern "C" {
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMallocAsync(void **, size_t, void *);
int cudaFreeAsync(void *, void *);
int cudaMallocPitch(void **, size_t *, size_t, size_t);
int cudaMalloc3D(cudaPitchedPtr *, cudaExtent);
int cudaMemset3D(cudaPitchedPtr, int, cudaExtent);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
int cudaMallocHost(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaDeviceSynchronize();
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
int __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void **);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
}
template <class T> static inline int cudaMalloc(T **P, size_t N) { return ::cudaMalloc((void **)(void *)P, N); }

// A kernel's host stub; the arguments' addresses follow the parameters.
#define KERNEL(Name, Parameters, ...)                                                                                  \
  void Name Parameters {                                                                                               \
    void *Addresses[] = {__VA_ARGS__};                                                                                 \
    dim3 Grid, Block;                                                                                                  \
    size_t Shared;                                                                                                     \
    void *Stream;                                                                                                      \
    if (__cudaPopCallConfiguration(&Grid, &Block, &Shared, &Stream) == 0)                                              \
      cudaLaunchKernel((const void *)(void(*) Parameters)Name, Grid, Block, Addresses, Shared, Stream);                \
  }

#define LAUNCH_IN(Stream, Grid, Block, Call) (__cudaPushCallConfiguration(Grid, Block, 0, Stream) ? (void)0 : Call)
#define LAUNCH(Grid, Block, Call) LAUNCH_IN(nullptr, Grid, Block, Call)
