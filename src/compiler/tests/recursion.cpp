// What cannot be inlined is left to the runtime, and the remark says why.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

// CHECK: launch of scale stays lazy: the pointer is parameter {{.*}} of the function, which was not inlined: it is
// recursive
void descend(float *A, int N) {
  if (N == 0)
    return;
  LAUNCH(N, 32, scale(A, N));
  descend(A, N / 2);
  LAUNCH(N, 32, scale(A, N));
  descend(A, N / 3);
}

void run(int N) {
  float *A;
  cudaMalloc(&A, N);
  descend(A, N);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z7descendPfi(
// CHECK-NOT: call i64 @heddle_task_begin(
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: ret void
