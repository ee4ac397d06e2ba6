// Code that the pass has seen already stays as it is: one begin, one end, however often it comes by.
// RUN: %compile -O2 %s 2>/dev/null | %again -O2 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

void run(int N) {
  float *A;
  cudaMalloc(&A, N);
  LAUNCH(N / 32, 32, scale(A, N));
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: call i64 @heddle_task_begin(
// CHECK-NOT: call i64 @heddle_task_begin(
// CHECK: call void @heddle_task_end(
// CHECK-NOT: call void @heddle_task_end(
// CHECK: ret void
