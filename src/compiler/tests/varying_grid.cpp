// The probe stands before the loop and announces the largest grid.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(diagonal, (int *A, int I), &A, &I)

// CHECK: launch of diagonal is bound: 1 buffer
void run(int N) {
  int *A;
  cudaMalloc(&A, N * sizeof(int));
  for (int I = 1; I <= N; ++I)
    LAUNCH(I, 16, diagonal(A, I));
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: call i32 @llvm.umax.i32(
// CHECK: call i64 @heddle_task_begin(
// CHECK: @__cudaPushCallConfiguration
