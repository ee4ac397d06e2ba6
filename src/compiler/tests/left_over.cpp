// What was announced and may not have been allocated goes back behind the last allocation.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, float *B, int N), &A, &B, &N)
bool choose();

void condition(float *H, int N) {
  float *A, *B = nullptr;
  cudaMalloc(&A, 4096);
  if (choose())
    cudaMalloc(&B, 8192);
  LAUNCH(8, 32, scale(A, B, N));
  cudaMemcpy(H, A, 4096, cudaMemcpyDeviceToHost);
  cudaFree(B);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z9conditionPfi(
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: call { ptr, i32 } @heddle_malloc(i64 8192)
// CHECK: call void @heddle_task_allocated(i64 %[[TASK]])
// CHECK-NOT: call void @heddle_task_allocated(
// CHECK: call {{.*}}@__cudaPushCallConfiguration(

// A size that is only known to be at most 8192 when the task begins.
void bound(float *H, int N) {
  float *A, *B;
  cudaMalloc(&A, 4096);
  cudaMemset(A, 0, 4096);
  cudaMalloc(&B, choose() ? 8192 : 64);
  LAUNCH(8, 32, scale(A, B, N));
  cudaMemcpy(H, A, 4096, cudaMemcpyDeviceToHost);
  cudaFree(B);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z5boundPfi(
// CHECK: call { ptr, i32 } @heddle_malloc(i64 4096)
// CHECK: call { ptr, i32 } @heddle_malloc(i64 %
// CHECK-NEXT: call void @heddle_task_allocated(
// CHECK: call {{.*}}@__cudaPushCallConfiguration(

// A loop that may be left before it has turned as often as announced.
void loop(int Count, int N) {
  float *A[64];
  for (int I = 0; I < Count; ++I)
    cudaMalloc(&A[I], 4096);
  for (int I = 0; I < Count; ++I)
    LAUNCH(8, 32, scale(A[I], A[I], N));
  for (int I = 0; I < Count; ++I)
    cudaFree(A[I]);
}
// CHECK-LABEL: define {{.*}}@_Z4loopii(
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: for.cond2.preheader:
// CHECK-NEXT: call void @heddle_task_allocated(i64 %[[TASK]])

// Nothing is left over: no call.
void all(int N) {
  float *A, *B;
  cudaMalloc(&A, 4096);
  cudaMalloc(&B, 8192);
  LAUNCH(8, 32, scale(A, B, N));
  cudaFree(B);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3alli(
// CHECK-NOT: call void @heddle_task_allocated(
// CHECK: ret void
