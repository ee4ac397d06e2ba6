// A buffer whose last use lies before other device work goes back there; what may be known elsewhere does not.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, float *B), &A, &B)
void remember(float *);

// CHECK: bound: 3 buffers {{.*}}2 early frees
void run(float *H, int N) {
  float *A, *B, *C;
  cudaMalloc(&A, N);
  cudaMalloc(&B, N);
  cudaMalloc(&C, N);
  LAUNCH(8, 32, scale(A, B));
  LAUNCH(8, 32, scale(B, C));
  cudaMemcpy(H, B, N, cudaMemcpyDeviceToHost);
  cudaMemcpy(H, C, N, cudaMemcpyDeviceToHost);
  cudaFree(A);
  cudaFree(B);
  cudaFree(C);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfi(
// CHECK: %[[A:.*]] = extractvalue { ptr, i32 } %{{.*}}, 0
// CHECK: call void @_Z5scalePfS_(ptr noundef %[[A]],
// CHECK: call void @heddle_free_early(ptr %[[A]])
// CHECK: @cudaMemcpy
// CHECK: call void @heddle_free_early(
// CHECK: @cudaMemcpy
// CHECK-NOT: call void @heddle_free_early(
// CHECK: ret void

void known(float *H, int N) {
  float *A, *B;
  cudaMalloc(&A, N);
  cudaMalloc(&B, N);
  remember(A);
  LAUNCH(8, 32, scale(A, B));
  cudaMemcpy(H, B, N, cudaMemcpyDeviceToHost);
  cudaFree(A);
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z5knownPfi(
// CHECK-NOT: call void @heddle_free_early
// CHECK: ret void

// A struct that another function gets by value takes the pointer along.
struct Pair {
  float *A, *B;
  long Size;
};
void elsewhere(Pair);

void handedOn(float *H, int N) {
  Pair P{nullptr, nullptr, N};
  cudaMalloc(&P.A, N);
  cudaMalloc(&P.B, N);
  LAUNCH(8, 32, scale(P.A, P.B));
  elsewhere(P);
  cudaMemcpy(H, P.B, N, cudaMemcpyDeviceToHost);
  cudaFree(P.A);
  cudaFree(P.B);
}
// CHECK-LABEL: define {{.*}}@_Z8handedOnPfi(
// CHECK-NOT: call void @heddle_free_early
// CHECK: ret void
