#pragma once

// What heddle needs of the driver API's public types, after NVIDIA's documentation of it; see cuda_types.h. Handles of
// streams, events, graphs, arrays and memory pools are the runtime's own, as in CUDA.

#include "client/graph/graph_types.h"

namespace heddle::client {

enum CUresult : int {
#define HEDDLE_DRIVER_ERROR(number, name, text) name = (number),
#include "client/driver/driver_errors.inc"
#undef HEDDLE_DRIVER_ERROR
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct Context*;
using CUmodule = struct CUmod_st*;
using CUlibrary = struct CUlib_st*;
using CUfunction = struct CUfunc_st*;
using CUkernel = struct CUkern_st*;
using CUlinkState = struct CUlinkState_st*;
using CUoccupancyB2DSize = size_t (*)(int block_size);

struct CUuuid {
  char bytes[16];
};
struct CUdevprop {
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate, textureAlign;
};
// Affinities of contexts for parts of a device, of which heddle has none.
struct CUctxCreateParams {
  void* execAffinityParams;
  int numExecAffinityParams;
  void* cigParams;
};

enum CUmemorytype : int {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
};
struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  cudaArray_t srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  cudaArray_t dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};
// CUDA_MEMCPY3D_PEER too, which has contexts in the place of the reserved pointers: addresses say whose memory it is.
struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  cudaArray_t srcArray;
  void* reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  cudaArray_t dstArray;
  void* reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};

struct CUmemcpyAttributes {
  int srcAccessOrder;
  cudaMemLocation srcLocHint, dstLocHint;
  unsigned flags;
};

enum CUarray_format : int {
  CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
  CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
  CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
  CU_AD_FORMAT_SIGNED_INT8 = 0x08,
  CU_AD_FORMAT_SIGNED_INT16 = 0x09,
  CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
  CU_AD_FORMAT_HALF = 0x10,
  CU_AD_FORMAT_FLOAT = 0x20,
};
struct CUDA_ARRAY_DESCRIPTOR {
  size_t Width, Height;
  CUarray_format Format;
  unsigned NumChannels;
};
struct CUDA_ARRAY3D_DESCRIPTOR {
  size_t Width, Height, Depth;
  CUarray_format Format;
  unsigned NumChannels, Flags;
};
struct CUDA_RESOURCE_DESC {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t hArray;
    } array;
    struct {
      CUdeviceptr devPtr;
      CUarray_format format;
      unsigned numChannels;
      size_t sizeInBytes;
    } linear;
    struct {
      CUdeviceptr devPtr;
      CUarray_format format;
      unsigned numChannels;
      size_t width, height, pitchInBytes;
    } pitch2D;
    int reserved[32];
  } res;
  unsigned flags;
};
struct CUDA_TEXTURE_DESC {
  int addressMode[3];
  int filterMode;
  unsigned flags, maxAnisotropy;
  int mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  float borderColor[4];
  int reserved[12];
};
inline constexpr unsigned CU_TRSF_READ_AS_INTEGER = 1, CU_TRSF_NORMALIZED_COORDINATES = 2, CU_TRSF_SRGB = 16,
                          CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION = 32, CU_TRSF_SEAMLESS_CUBEMAP = 64;

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  cudaStream_t hStream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
// The third version is the same, and the first ends before `kern`.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  dim3 grid, block;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};
struct CUDA_MEMCPY_NODE_PARAMS {
  int flags, reserved;
  CUcontext copyCtx;
  CUDA_MEMCPY3D copyParams;
};
struct CUgraphNodeParams {
  cudaGraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS memcpy;
    cudaMemsetParams memset;  // and a context
    cudaHostNodeParams host;
    cudaChildGraphNodeParams graph;
    cudaEvent_t event;
    cudaMemAllocNodeParams alloc;
    cudaMemFreeNodeParams free;
    cudaConditionalNodeParams conditional;  // and a context
  };
  long long reserved2;
};
static_assert(sizeof(CUgraphNodeParams) == sizeof(cudaGraphNodeParams));

}  // namespace heddle::client
