// Allocation, work and release in functions of their own, over a struct: inlined, then bound.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)

struct State {
  float *Data;
  int N;
};
static void init(State &S, int N) {
  S.N = N;
  cudaMalloc(&S.Data, N * sizeof(float));
  cudaMemset(S.Data, 0, N * sizeof(float));
}
static void execute(State &S) { LAUNCH(S.N / 64, 64, scale(S.Data, S.N)); }
static void release(State &S) { cudaFree(S.Data); }

// CHECK: launch of scale is bound: 1 buffer announced
int main(int Count, char **) {
  State S;
  init(S, Count);
  for (int I = 0; I < 10; ++I)
    execute(S);
  release(S);
}
// CHECK-LABEL: define {{.*}}@main(
// CHECK: call i64 @heddle_task_begin(
// CHECK-NOT: call i64 @heddle_task_begin(
// CHECK: call {{.*}}@cudaFree(
// CHECK-NEXT: call void @heddle_task_end(
