// A size that is read from memory is read at the probe, if nobody writes it in between.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, float *B), &A, &B)
struct Net {
  long In, Out;
};
void change(Net *);

// CHECK: heap_size.cpp:[[@LINE+6]]{{.*}}bound: 2 buffers
void steady(Net *N) {
  float *A, *B;
  cudaMalloc(&A, N->In);
  cudaMemset(A, 0, N->In);
  cudaMalloc(&B, N->Out);
  LAUNCH(8, 32, scale(A, B));
  cudaFree(A);
  cudaFree(B);
}
// CHECK: partly bound: 1 size not known at the probe
void changing(Net *N) {
  float *A, *B;
  cudaMalloc(&A, N->In);
  cudaMemset(A, 0, 64);
  change(N);
  cudaMalloc(&B, N->Out);
  LAUNCH(8, 32, scale(A, B));
  cudaFree(A);
  cudaFree(B);
}
