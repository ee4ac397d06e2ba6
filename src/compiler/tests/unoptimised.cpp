// -O0 stays as it was written: everything is lazy, and cudaMalloc is called as before.
// RUN: %compile -O0 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

// CHECK: launch of scale stays lazy: the host code is compiled without optimisation (-O0)
void run(int N) {
  float *A;
  cudaMalloc(&A, N);
  LAUNCH(N, 32, scale(A, N));
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK-NOT: heddle_
// CHECK: ret void
