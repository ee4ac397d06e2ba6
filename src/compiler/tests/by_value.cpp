// A kernel that takes its pointers in a struct.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

struct Arguments {
  const float *In;
  float *Out;
  int N;
  double Pad[4];
};
KERNEL(copy, (Arguments A), &A)

// CHECK: launch of copy is bound: 2 buffers
void run(int N) {
  float *A, *B;
  cudaMalloc(&A, N * sizeof(float));
  cudaMalloc(&B, N * sizeof(float));
  Arguments Both{A, B, N, {}};
  LAUNCH(N / 32, 32, copy(Both));
  cudaFree(A);
  cudaFree(B);
}
// CHECK: call i64 @heddle_task_begin(
