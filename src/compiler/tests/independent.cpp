// Two sets of buffers that no launch joins are two tasks; a third launch that joins them makes one.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
KERNEL(join, (float *A, float *B), &A, &B)

void two(int N) {
  float *A, *B;
  cudaMalloc(&A, N);
  cudaMalloc(&B, 2 * N);
  LAUNCH(8, 32, scale(A, N));
  LAUNCH(8, 32, scale(B, N));
  cudaFree(A);
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z3twoi(
// CHECK: %[[FIRST:.*]] = call i64 @heddle_task_begin(
// CHECK: %[[SECOND:.*]] = call i64 @heddle_task_begin(
// CHECK: call void @heddle_task_end(i64 %[[FIRST]])
// CHECK: call void @heddle_task_end(i64 %[[SECOND]])
// CHECK: ret void

void one(int N) {
  float *A, *B;
  cudaMalloc(&A, N);
  cudaMalloc(&B, 2 * N);
  LAUNCH(8, 32, scale(A, N));
  LAUNCH(8, 32, scale(B, N));
  LAUNCH(8, 32, join(A, B));
  cudaFree(A);
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z3onei(
// CHECK: call i64 @heddle_task_begin(
// CHECK-NOT: call i64 @heddle_task_begin(
// CHECK: ret void
