// Our declarations of CUDA's types against the toolkit's own, where there is one. Compiling it is the test.

#include "client/cuda_types.h"

#include "client/api/device_properties.h"
#include "client/graph/graph_types.h"
#include "client/memory/pool_types.h"

// After ours: the toolkit's macros may not touch our names.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>

#define SAME_SIZE(type) static_assert(sizeof(heddle::client::type) == sizeof(::type), #type)
#define SAME_OFFSET(type, member) \
  static_assert(offsetof(heddle::client::type, member) == offsetof(::type, member), #type "::" #member)
#define SAME_VALUE(name) static_assert(static_cast<long>(heddle::client::name) == static_cast<long>(::name), #name)

SAME_SIZE(dim3);
SAME_SIZE(cudaPitchedPtr);
SAME_SIZE(cudaExtent);
SAME_SIZE(cudaMemcpy3DParms);
SAME_OFFSET(cudaMemcpy3DParms, dstPtr);
SAME_OFFSET(cudaMemcpy3DParms, extent);
SAME_OFFSET(cudaMemcpy3DParms, kind);
SAME_SIZE(cudaMemcpy3DPeerParms);
SAME_OFFSET(cudaMemcpy3DPeerParms, dstPtr);
SAME_OFFSET(cudaMemcpy3DPeerParms, extent);
SAME_OFFSET(cudaPointerAttributes, devicePointer);
SAME_OFFSET(cudaPointerAttributes, hostPointer);
SAME_SIZE(cudaMemLocation);
SAME_SIZE(cudaFuncAttributes);
SAME_OFFSET(cudaFuncAttributes, numRegs);
SAME_OFFSET(cudaFuncAttributes, maxDynamicSharedSizeBytes);
SAME_SIZE(cudaLaunchAttribute);
SAME_OFFSET(cudaLaunchAttribute, val);
SAME_SIZE(cudaLaunchConfig_t);
SAME_OFFSET(cudaLaunchConfig_t, attrs);
SAME_SIZE(cudaChannelFormatDesc);
static_assert(sizeof(heddle::client::cudaResourceDesc) == offsetof(::cudaResourceDesc, flags));
SAME_OFFSET(cudaResourceDesc, res.linear.sizeInBytes);
SAME_OFFSET(cudaResourceDesc, res.pitch2D.pitchInBytes);
SAME_SIZE(cudaTextureDesc);
SAME_OFFSET(cudaTextureDesc, borderColor);
SAME_OFFSET(cudaTextureDesc, normalizedCoords);
SAME_OFFSET(cudaTextureDesc, seamlessCubemap);
SAME_VALUE(cudaResourceTypePitch2D);
SAME_VALUE(cudaChannelFormatKindFloat);
SAME_VALUE(cudaMemcpyDefault);
SAME_VALUE(cudaMemoryTypeManaged);
SAME_VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize);
SAME_VALUE(cudaFuncAttributePreferredSharedMemoryCarveout);
SAME_VALUE(cudaLaunchAttributeCooperative);
SAME_VALUE(cudaLaunchAttributeClusterDimension);
SAME_VALUE(cudaLaunchAttributeProgrammaticStreamSerialization);
SAME_VALUE(cudaLaunchAttributePriority);
SAME_VALUE(cudaLaunchAttributePreferredSharedMemoryCarveout);
SAME_VALUE(cudaLimitPersistingL2CacheSize);
SAME_VALUE(cudaStreamCaptureStatusInvalidated);
SAME_VALUE(cudaStreamCaptureModeRelaxed);
SAME_VALUE(cudaGraphNodeTypeEmpty);
SAME_VALUE(cudaGraphNodeTypeWaitEvent);
SAME_VALUE(cudaGraphNodeTypeEventRecord);
SAME_VALUE(cudaGraphNodeTypeMemFree);
SAME_VALUE(cudaMemAllocationTypePinned);
SAME_VALUE(cudaMemAccessFlagsProtReadWrite);
SAME_VALUE(cudaMemLocationTypeDevice);
SAME_VALUE(cudaMemPoolReuseFollowEventDependencies);
SAME_VALUE(cudaMemPoolAttrReleaseThreshold);
SAME_VALUE(cudaMemPoolAttrUsedMemHigh);
SAME_SIZE(cudaMemPoolProps);
SAME_OFFSET(cudaMemPoolProps, maxSize);
SAME_SIZE(cudaMemAccessDesc);
SAME_SIZE(cudaMemAllocNodeParams);
SAME_OFFSET(cudaMemAllocNodeParams, dptr);
SAME_VALUE(cudaGraphMemAttrReservedMemHigh);
SAME_SIZE(cudaKernelNodeParams);
SAME_OFFSET(cudaKernelNodeParams, extra);
SAME_SIZE(cudaMemsetParams);
SAME_OFFSET(cudaMemsetParams, elementSize);
SAME_SIZE(cudaHostNodeParams);
SAME_VALUE(cudaGraphExecUpdateErrorParametersChanged);
SAME_SIZE(cudaGraphInstantiateParams);
SAME_SIZE(cudaGraphExecUpdateResultInfo);
SAME_OFFSET(cudaGraphExecUpdateResultInfo, errorFromNode);
#if CUDART_VERSION >= 13000
SAME_SIZE(cudaGraphEdgeData);
SAME_VALUE(cudaGraphCondAssignDefault);
SAME_VALUE(cudaGraphCondTypeSwitch);
SAME_SIZE(cudaGraphConditionalHandle);
SAME_OFFSET(cudaConditionalNodeParams, size);
SAME_OFFSET(cudaConditionalNodeParams, phGraph_out);
SAME_SIZE(cudaGraphNodeParams);
SAME_OFFSET(cudaGraphNodeParams, kernel);
SAME_OFFSET(cudaGraphNodeParams, memcpy);
SAME_OFFSET(cudaGraphNodeParams, alloc);
SAME_OFFSET(cudaGraphNodeParams, free);
SAME_SIZE(cudaChildGraphNodeParams);
SAME_OFFSET(cudaMemcpyNodeParams, copyParams);
SAME_VALUE(cudaGraphInstantiateFlagDeviceLaunch);
SAME_VALUE(cudaGraphNodeTypeConditional);
#endif

#define HEDDLE_CUDA_ERROR(number, name, text) SAME_VALUE(name);
#include "client/cuda_errors.inc"
#undef HEDDLE_CUDA_ERROR

using Ours = heddle::client::DeviceProperties13;
#define SAME_PROPERTY(member) static_assert(offsetof(Ours, member) == offsetof(cudaDeviceProp, member), #member)
#if CUDART_VERSION >= 13000
static_assert(sizeof(Ours) == sizeof(cudaDeviceProp));
SAME_PROPERTY(totalGlobalMem);
SAME_PROPERTY(maxGridSize);
SAME_PROPERTY(multiProcessorCount);
SAME_PROPERTY(surfaceAlignment);
SAME_PROPERTY(pciBusID);
SAME_PROPERTY(sharedMemPerBlockOptin);
SAME_PROPERTY(maxBlocksPerMultiProcessor);
SAME_PROPERTY(hostNumaId);
#endif

TEST(CudaTypes, EveryErrorHasTheToolkitsNumber) {
  size_t errors = 0;
#define HEDDLE_CUDA_ERROR(number, name, text) errors += number == static_cast<int>(::name);
#include "client/cuda_errors.inc"
#undef HEDDLE_CUDA_ERROR
  EXPECT_GT(errors, 100u);
}
