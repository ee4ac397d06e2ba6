// A template's stub has no name that tells, and is known by what it does.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

template <class T, int K> void times(T *A, int N) {
  void *Addresses[] = {&A, &N};
  dim3 Grid, Block;
  size_t Shared;
  void *Stream;
  if (__cudaPopCallConfiguration(&Grid, &Block, &Shared, &Stream) == 0)
    cudaLaunchKernel((const void *)(void (*)(T *, int))times<T, K>, Grid, Block, Addresses, Shared, Stream);
}

// CHECK: launch of {{.*}}times<float, 3> is bound: 1 buffer
void run(int N) {
  float *A;
  cudaMalloc(&A, N * sizeof(float));
  LAUNCH(N / 32, 32, (times<float, 3>(A, N)));
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: store ptr @_Z5timesIfLi3EEvPT_i, ptr %heddle.launches
// CHECK: call i64 @heddle_task_begin(
