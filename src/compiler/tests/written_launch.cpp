// A launch that the program writes itself is left to the runtime; what it gets counts as used until it was called.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

void run(float *H, int N) {
  float *A, *B;
  cudaMalloc(&A, N);
  cudaMalloc(&B, N);
  LAUNCH(N / 32, 32, scale(A, N));
  void *Arguments[] = {&A, &N};
  cudaLaunchKernel((const void *)scale, 8, 32, Arguments, 0, nullptr);
  LAUNCH(N / 32, 32, scale(B, N));
  cudaMemcpy(H, B, N, cudaMemcpyDeviceToHost);
  cudaFree(A);
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfi(
// CHECK-NOT: call void @heddle_free_early(
// CHECK: call {{.*}}@cudaLaunchKernel(
