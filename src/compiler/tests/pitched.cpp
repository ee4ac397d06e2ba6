// A volume by cudaMalloc3D is announced in rows as heddle's runtime rounds them, whether the kernel takes the struct or
// the pointer; cudaMemset3D is one of its uses.
// RUN: %compile -O1 %s 2>&1 | %check
// RUN: %compile -O2 %s 2>&1 | %check
// RUN: %compile -O3 %s 2>&1 | %check
#include "include/nvcc.h"

KERNEL(fill, (cudaPitchedPtr Volume, float *Sums), &Volume, &Sums)
KERNEL(sum, (float *Sums, float *Total), &Sums, &Total)

// CHECK: launch of fill is bound: 3 buffers announced {{.*}}, 2 early frees
// CHECK: launch of sum is bound: 3 buffers
void run(float *H, size_t Columns, size_t Rows, size_t Slices) {
  cudaPitchedPtr Volume;
  float *Sums, *Total;
  cudaExtent Extent{Columns * sizeof(float), Rows, Slices};
  cudaMalloc3D(&Volume, Extent);
  cudaMalloc(&Sums, Slices * sizeof(float));
  cudaMalloc(&Total, 256);
  LAUNCH(Slices, Columns, fill(Volume, Sums));
  cudaMemset3D(Volume, 0, Extent);
  LAUNCH(1, 32, sum(Sums, Total));
  cudaMemcpy(H, Total, 4, cudaMemcpyDeviceToHost);
  cudaFree(Volume.ptr);
  cudaFree(Sums);
  cudaFree(Total);
}
// CHECK-LABEL: define {{.*}}@_Z3runPfmmm(
// CHECK: %[[WIDTH:[0-9a-z]+]] = shl {{.*}}, 2
// CHECK: add {{.*}}%[[WIDTH]], 511
// CHECK: %[[PITCH:[0-9a-z]+]] = and i64 {{.*}}, -512
// CHECK: %[[SLICE:[0-9a-z]+]] = mul i64 %[[PITCH]], %Rows
// CHECK: mul i64 %[[SLICE]], %Slices
// CHECK: call i64 @heddle_task_begin(
// CHECK: call { ptr, i32, i64 } @heddle_malloc_3d(i64 %[[WIDTH]], i64 %Rows, i64 %Slices)
// CHECK: @cudaMemset3D(
// CHECK: call void @heddle_free_early(
// CHECK: @_Z3sumPfS_(
