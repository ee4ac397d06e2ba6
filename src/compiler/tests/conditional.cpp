// A buffer under a condition that is known at the probe counts only where the condition holds.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, float *B, int N), &A, &B, &N)

// CHECK: launch of scale is bound: 2 buffers
void run(bool Extra, int N) {
  float *A, *B = nullptr;
  cudaMalloc(&A, 4096);
  if (Extra)
    cudaMalloc(&B, 8192);
  LAUNCH(8, 32, scale(A, B, N));
  if (Extra)
    cudaFree(B);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runbi(
// CHECK: select i1 %{{.*}}, i64 8192, i64 0
// CHECK: call i64 @heddle_task_begin(
