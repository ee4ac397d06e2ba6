// An exception passes a task whose function has nothing to clean up on that way but ours.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
void mayThrow();
struct Guard {
  ~Guard();
};

void run(int N) {
  { Guard G; mayThrow(); }
  float *A;
  cudaMalloc(&A, N);
  LAUNCH(N, 64, scale(A, N));
  mayThrow();
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: invoke void @_Z8mayThrowv()
// CHECK: heddle.unwind
// CHECK: landingpad
// CHECK: call void @heddle_task_end(i64 %[[TASK]])
// CHECK-NEXT: resume
