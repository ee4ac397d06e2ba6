// Buffers that free themselves: the task ends on the normal way and on the one of an exception.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, int N), &A, &N)
void mayThrow();

class Buffer {
public:
  explicit Buffer(int N) { cudaMalloc(&Data, N * sizeof(float)); }
  ~Buffer() { cudaFree(Data); }
  float *get() const { return Data; }

private:
  float *Data;
};

// CHECK: launch of scale is bound: 2 buffers
void run(int N) {
  Buffer A(N), B(2 * N);
  LAUNCH(N / 64, 64, scale(A.get(), N));
  LAUNCH(N / 32, 64, scale(B.get(), N));
  cudaMemcpy(A.get(), B.get(), N, 3);
  mayThrow();
}
// CHECK-LABEL: define {{.*}}@_Z3runi(
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: invoke void @_Z8mayThrowv()
// CHECK: call {{.*}}@cudaFree(
// CHECK: call void @heddle_task_end(i64 %[[TASK]])
// CHECK: ret void
// CHECK: landingpad
// CHECK: call {{.*}}@cudaFree(
// CHECK: call void @heddle_task_end(i64 %[[TASK]])
// CHECK: resume
