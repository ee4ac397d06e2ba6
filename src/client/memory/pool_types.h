#pragma once

#include "client/cuda_types.h"

// CUDA's public types of memory pools; see cuda_types.h.
namespace heddle::client {

using cudaMemPool_t = struct CUmemPoolHandle_st*;

inline constexpr int cudaMemLocationTypeDevice = 1;
enum cudaMemAllocationType : int { cudaMemAllocationTypePinned = 1, cudaMemAllocationTypeManaged = 2 };
enum cudaMemAccessFlags : int {
  cudaMemAccessFlagsProtNone = 0,
  cudaMemAccessFlagsProtRead = 1,
  cudaMemAccessFlagsProtReadWrite = 3,
};
enum cudaMemPoolAttr : int {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic = 2,
  cudaMemPoolReuseAllowInternalDependencies = 3,
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent = 5,
  cudaMemPoolAttrReservedMemHigh = 6,
  cudaMemPoolAttrUsedMemCurrent = 7,
  cudaMemPoolAttrUsedMemHigh = 8,
};
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  int handleTypes;  // cudaMemHandleTypeNone is 0
  cudaMemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
struct cudaMemAccessDesc {
  cudaMemLocation location;
  cudaMemAccessFlags flags;
};

}  // namespace heddle::client
