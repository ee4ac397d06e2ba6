// Each way out ends the task once; exit() needs no end.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
int ready();

int run(int N, float *H) {
  float *A;
  if (cudaMalloc(&A, N) != 0)
    exit(1);
  if (!ready())
    return 7;
  LAUNCH(N, 64, scale(A, N));
  cudaMemcpy(H, A, N, cudaMemcpyDeviceToHost);
  cudaFree(A);
  return 0;
}
// CHECK-LABEL: define {{.*}}@_Z3runiPf(
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: call void @exit(
// CHECK-NEXT: unreachable
// CHECK: call {{.*}}@cudaFree(
// CHECK-NEXT: call void @heddle_task_end(i64
// CHECK: call void @heddle_task_end(i64
// CHECK: ret i32
