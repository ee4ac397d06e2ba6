// A buffer that no launch uses belongs to no task: it is the runtime's, and the others are announced without it.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

// CHECK: launch of scale is bound: 1 buffer announced
void run(float *H, int N) {
  float *A, *Unused;
  cudaMalloc(&Unused, 4096);
  cudaMemcpy(Unused, H, 4096, cudaMemcpyHostToDevice);
  cudaMalloc(&A, 8192);
  LAUNCH(8, 32, scale(A, N));
  cudaFree(A);
  cudaFree(Unused);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfi(
// CHECK-NOT: store i64 4096, ptr %heddle.buffers
// CHECK: store i64 8192, ptr %heddle.buffers
// CHECK: call i64 @heddle_task_begin(
