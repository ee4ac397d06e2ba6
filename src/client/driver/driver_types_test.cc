// Our declarations of the driver's types against the toolkit's own, where there is one. Compiling it is the test.

#include "client/driver/driver_types.h"

// After ours: the toolkit's macros may not touch our names.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

#define SAME_SIZE(type) static_assert(sizeof(heddle::client::type) == sizeof(::type), #type)
#define SAME_OFFSET(type, member) \
  static_assert(offsetof(heddle::client::type, member) == offsetof(::type, member), #type "::" #member)
// A type of ours that stands for one of another name.
#define STANDS_FOR(ours, type) static_assert(sizeof(heddle::client::ours) == sizeof(::type), #type)

SAME_SIZE(CUdeviceptr);
SAME_SIZE(CUdevice);
SAME_SIZE(CUuuid);
SAME_SIZE(CUdevprop);
SAME_OFFSET(CUdevprop, textureAlign);
SAME_SIZE(CUDA_MEMCPY2D);
SAME_OFFSET(CUDA_MEMCPY2D, dstXInBytes);
SAME_OFFSET(CUDA_MEMCPY2D, dstArray);
SAME_OFFSET(CUDA_MEMCPY2D, WidthInBytes);
SAME_SIZE(CUDA_MEMCPY3D);
SAME_OFFSET(CUDA_MEMCPY3D, srcHeight);
SAME_OFFSET(CUDA_MEMCPY3D, dstArray);
SAME_OFFSET(CUDA_MEMCPY3D, Depth);
STANDS_FOR(CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER);
static_assert(offsetof(heddle::client::CUDA_MEMCPY3D, dstHeight) == offsetof(::CUDA_MEMCPY3D_PEER, dstHeight));
SAME_SIZE(CUmemcpyAttributes);
SAME_OFFSET(CUmemcpyAttributes, flags);
SAME_SIZE(CUDA_ARRAY_DESCRIPTOR);
SAME_SIZE(CUDA_ARRAY3D_DESCRIPTOR);
SAME_OFFSET(CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_SIZE(CUDA_RESOURCE_DESC);
SAME_OFFSET(CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
SAME_OFFSET(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SAME_OFFSET(CUDA_RESOURCE_DESC, flags);
SAME_SIZE(CUDA_TEXTURE_DESC);
SAME_OFFSET(CUDA_TEXTURE_DESC, flags);
SAME_OFFSET(CUDA_TEXTURE_DESC, borderColor);
SAME_SIZE(CUlaunchConfig);
SAME_OFFSET(CUlaunchConfig, hStream);
SAME_OFFSET(CUlaunchConfig, numAttrs);
STANDS_FOR(cudaLaunchAttribute, CUlaunchAttribute);
STANDS_FOR(CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v2);
static_assert(offsetof(heddle::client::CUDA_KERNEL_NODE_PARAMS, kern) == offsetof(::CUDA_KERNEL_NODE_PARAMS_v2, kern));
STANDS_FOR(cudaKernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v1);
STANDS_FOR(cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS);
STANDS_FOR(cudaHostNodeParams, CUDA_HOST_NODE_PARAMS);
STANDS_FOR(cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS);
STANDS_FOR(cudaMemPoolProps, CUmemPoolProps);
STANDS_FOR(cudaMemAccessDesc, CUmemAccessDesc);
STANDS_FOR(cudaGraphEdgeData, CUgraphEdgeData);
STANDS_FOR(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
STANDS_FOR(cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo);
SAME_SIZE(CUDA_MEMCPY_NODE_PARAMS);
SAME_OFFSET(CUDA_MEMCPY_NODE_PARAMS, copyParams);
SAME_SIZE(CUgraphNodeParams);
SAME_OFFSET(CUgraphNodeParams, kernel);

TEST(DriverTypes, EveryErrorHasTheToolkitsNumber) {
  size_t errors = 0;
#define HEDDLE_DRIVER_ERROR(number, name, text) \
  static_assert((number) == ::name);            \
  ++errors;
#include "client/driver/driver_errors.inc"
#undef HEDDLE_DRIVER_ERROR
  EXPECT_EQ(errors, 101u);
}
