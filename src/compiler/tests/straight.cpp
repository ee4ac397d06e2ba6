// Everything in one function (CASE, figure 3), at every level that optimises.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(add, (const float *A, const float *B, float *C, int N), &A, &B, &C, &N)

// CHECK: straight.cpp:[[@LINE+8]]:{{.*}}launch of add is bound: 3 buffers announced at {{.*}}straight.cpp:[[@LINE+4]]
void run(float *H, int N) {
  const size_t Bytes = N * sizeof(float);
  float *A, *B, *C;
  cudaMalloc(&A, Bytes);
  cudaMalloc(&B, Bytes);
  cudaMalloc(&C, 2 * Bytes);
  cudaMemcpy(A, H, Bytes, cudaMemcpyHostToDevice);
  LAUNCH(N / 128, 128, add(A, B, C, N));
  cudaMemcpy(H, C, Bytes, cudaMemcpyDeviceToHost);
  cudaFree(A);
  cudaFree(B);
  cudaFree(C);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfi(
// CHECK: %[[BYTES:[0-9a-z]+]] = shl {{.*}}, 2
// CHECK: %[[TWICE:[0-9a-z]+]] = shl {{.*}}, 3
// CHECK: store i64 %[[BYTES]], ptr %heddle.buffers
// CHECK: store i64 %[[TWICE]], ptr
// CHECK: store ptr @_Z3addPKfS0_Pfi, ptr %heddle.launches
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: call { ptr, i32 } @heddle_malloc(
// CHECK: @cudaFree(
// CHECK: @cudaFree(
// CHECK: @cudaFree(
// CHECK-NEXT: call void @heddle_task_end(i64 %[[TASK]])
// CHECK-NEXT: ret void
// CHECK: define linkonce_odr hidden i64 @heddle_task_begin(
