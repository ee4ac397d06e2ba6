// Functions that do GPU work come into their callers, but not at any price, and not against the user's word.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

#define TEN(X) X X X X X X X X X X

KERNEL(scale, (float *A, int N), &A, &N)

// CHECK: step({{.*}}) does GPU work and is not inlined: its {{[0-9]+}} instructions are called from 100 places, and the
// program may grow by {{[0-9]+}} more CHECK: launch of scale stays lazy: the pointer is parameter {{.*}} which was not
// inlined: its {{[0-9]+}} instructions
void step(float *A, int N, volatile int *Log) {
  TEN(TEN(TEN(*Log = N;)))
  LAUNCH(N, 32, scale(A, N));
}

// CHECK: marked({{.*}}) does GPU work and is not inlined: it is marked noinline
// CHECK: launch of scale stays lazy: the pointer is parameter {{.*}} which was not inlined: it is marked noinline
__attribute__((noinline)) void marked(float *A, int N) { LAUNCH(N, 32, scale(A, N)); }

void allocate(float **A, int N) { cudaMalloc(A, N); }

// CHECK: launch of scale is bound: 1 buffer announced
void run(int N, volatile int *Log) {
  float *A, *B;
  allocate(&A, N);
  TEN(TEN(step(A, N, Log);))
  marked(A, N);
  cudaFree(A);
  allocate(&B, N);
  LAUNCH(N, 32, scale(B, N));
  cudaFree(B);
}
// CHECK-LABEL: define {{.*}}@_Z3runiPVi(
// CHECK-NOT: call {{.*}}@_Z8allocate
// CHECK: call void @_Z4stepPfiPVi(
// CHECK: call i64 @heddle_task_begin(
