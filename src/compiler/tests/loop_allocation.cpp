// Buffers that a loop allocates are announced together, with their number.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

void run(int Count, int N) {
  float *A[64];
  for (int I = 0; I < Count; ++I)
    cudaMalloc(&A[I], N);
  for (int I = 0; I < Count; ++I)
    LAUNCH(8, 32, scale(A[I], N));
  for (int I = 0; I < Count; ++I)
    cudaFree(A[I]);
}
// CHECK-LABEL: define {{.*}}@_Z3runii(
// CHECK: %[[COUNT:.*]] = zext {{.*}}i32 %Count to i64
// CHECK: store i64 %[[COUNT]], ptr
// CHECK: call i64 @heddle_task_begin(
// CHECK-NOT: call void @heddle_free_early
// CHECK: ret void
