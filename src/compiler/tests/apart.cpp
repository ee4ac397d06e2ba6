// Tasks that nobody else can see into may run apart: flagged, with a word for each launch, and with each operation
// between enter and leave. What may meet others' work stays as it is.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
KERNEL(swap, (float *A, float *B), &A, &B)
void remember(float *);

// CHECK: apart.cpp:[[#@LINE+9]]:{{.*}}may run apart
// CHECK: apart.cpp:[[#@LINE+9]]:{{.*}}may run apart
void two(float *H, int N) {
  float *A, *B, *C;
  cudaMalloc(&A, N);
  cudaMalloc(&B, N);
  cudaMalloc(&C, N);
  cudaMemcpy(A, H, N, cudaMemcpyHostToDevice);
  cudaMemset(B, 0, N);
  LAUNCH(8, 32, scale(A, N));
  LAUNCH(8, 32, swap(B, C));
  cudaMemcpy(H, A, N, cudaMemcpyDeviceToHost);
  cudaMemcpy(H, B, N, cudaMemcpyDeviceToHost);
  cudaFree(A);
  cudaFree(B);
  cudaFree(C);
}
// The third bit counts the two parameters; scale's second is a number.
// CHECK-DAG: constant [1 x i64] [i64 5]
// CHECK-DAG: constant [1 x i64] [i64 7]
// CHECK-LABEL: define {{.*}}@_Z3twoPfi(
// CHECK: %[[FIRST:.*]] = call i64 @heddle_task_begin(
// CHECK: call void @heddle_task_enter(i64 %[[FIRST]])
// CHECK-NEXT: call {{.*}} @heddle_malloc(
// CHECK-NEXT: call void @heddle_task_leave()
// CHECK: %[[SECOND:.*]] = call i64 @heddle_task_begin(
// CHECK: call void @heddle_task_enter(i64 %[[SECOND]])
// CHECK: call void @heddle_task_enter(i64 %[[FIRST]])
// CHECK-NEXT: call {{.*}} @cudaMemcpy(
// CHECK-NEXT: call void @heddle_task_leave()
// CHECK: call void @heddle_task_enter(i64 %[[SECOND]])
// CHECK-NEXT: call {{.*}} @cudaMemset(
// CHECK: call void @heddle_task_enter(i64 %[[FIRST]])
// CHECK-NEXT: call void @_Z5scalePfi(
// CHECK-NEXT: call void @heddle_task_leave()
// CHECK: ret void

// One has none to run beside.
void one(int N) {
  float *A;
  cudaMalloc(&A, N);
  LAUNCH(8, 32, scale(A, N));
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3onei(
// CHECK-NOT: @heddle_task_enter
// CHECK: ret void

// Somebody else knows A; B's copy does not wait; C is joined to host memory; D goes into a stream of its own.
void joined(float *H, void *Stream, int N) {
  float *A, *B, *C, *D, *Pinned;
  cudaMallocHost((void **)&Pinned, N);
  cudaMalloc(&A, N);
  cudaMalloc(&B, N);
  cudaMalloc(&C, N);
  cudaMalloc(&D, N);
  remember(A);
  LAUNCH(8, 32, scale(A, N));
  LAUNCH(8, 32, scale(B, N));
  cudaMemcpyAsync(H, B, N, cudaMemcpyDeviceToHost, nullptr);
  LAUNCH(8, 32, swap(C, Pinned));
  LAUNCH_IN(Stream, 8, 32, scale(D, N));
  cudaFree(A);
  cudaFree(B);
  cudaFree(C);
  cudaFree(D);
}
// CHECK-LABEL: define {{.*}}@_Z6joinedPfPvi(
// CHECK-NOT: @heddle_task_enter
// CHECK: ret void
