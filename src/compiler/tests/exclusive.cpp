// Allocations on branches that exclude each other count once, with the larger size.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
int choose();
void note();

// CHECK: launch of scale is bound: 2 buffers
void run(long Small, long Large) {
  float *A, *B;
  cudaMalloc(&B, 4096);
  cudaMemset(B, 0, 4096);
  if (choose()) {
    note();
    cudaMalloc(&A, Small);
  } else {
    cudaMalloc(&A, Large);
  }
  LAUNCH(8, 32, scale(A, 1));
  cudaMemcpy(A, B, 64, 3);
  LAUNCH(8, 32, scale(B, 1));
  LAUNCH(8, 32, scale(A > B ? A : B, 1));
  cudaFree(A);
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z3runll(
// CHECK: call i64 @llvm.umax.i64(i64 %{{.*}}, i64 %{{.*}})
// CHECK: call i64 @heddle_task_begin(
