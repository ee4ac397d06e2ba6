// Memory by cudaMallocPitch and cudaMallocAsync is announced; host and managed memory need no announcing, and do not keep
// the launch from being bound.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(scale, (float *A, size_t Pitch, float *B, const int *Flags, float *Managed), &A, &Pitch, &B, &Flags, &Managed)

// CHECK: launch of scale is bound: 2 buffers announced
void run(float *H, int Rows, int Columns, void *Stream) {
  float *A, *B, *Managed;
  int *Flags;
  size_t Pitch;
  cudaMallocHost((void **)&Flags, 64);
  cudaMallocManaged((void **)&Managed, 64, 1);
  cudaMallocPitch((void **)&A, &Pitch, Columns * sizeof(float), Rows);
  cudaMallocAsync((void **)&B, Rows * sizeof(float), Stream);
  cudaMemcpy2D(A, Pitch, H, Columns * sizeof(float), Columns * sizeof(float), Rows, cudaMemcpyHostToDevice);
  LAUNCH(Rows, Columns, scale(A, Pitch, B, Flags, Managed));
  cudaMemcpy(H, B, Rows * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFreeAsync(B, Stream);
  cudaFree(A);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfiiPv(
// CHECK: %[[WIDTH:[0-9a-z]+]] = shl {{.*}}, 2
// CHECK: add {{.*}}%[[WIDTH]], 511
// CHECK: and i64 {{.*}}, -512
// CHECK: mul i64
// CHECK: %[[TASK:.*]] = call i64 @heddle_task_begin(
// CHECK: call { ptr, i32, i64 } @heddle_malloc_pitch(i64 %[[WIDTH]],
// CHECK: call { ptr, i32 } @heddle_malloc_async(
// CHECK: @cudaFree(
// CHECK: call void @heddle_task_end(i64 %[[TASK]])
