#pragma once

// NVIDIA's driver API, found at run time: nothing of heddle links against libcuda, so that one build runs on machines
// with and without a GPU. Types and constants are cuda.h's; the functions are members of Driver, by the names that
// cuda.h gives them, so that `driver.cuMemHostRegister` is the version that the header declares.

#include <cuda.h>

#include <string>

#include "core/result.h"

namespace heddle::cuda {

// NOLINTBEGIN(cppcoreguidelines-macro-usage): a list of names that becomes members and look-ups alike.
#define HEDDLE_CUDA_FUNCTIONS(X)                 \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceTotalMem)                            \
  X(cuDeviceGetUuid)                             \
  X(cuDeviceGetPCIBusId)                         \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxSetCurrent)                             \
  X(cuCtxSynchronize)                            \
  X(cuCtxSetLimit)                               \
  X(cuMemGetInfo)                                \
  X(cuMemCreate)                                 \
  X(cuMemRelease)                                \
  X(cuMemExportToShareableHandle)                \
  X(cuMemImportFromShareableHandle)              \
  X(cuMemAddressReserve)                         \
  X(cuMemAddressFree)                            \
  X(cuMemMap)                                    \
  X(cuMemUnmap)                                  \
  X(cuMemSetAccess)                              \
  X(cuMemHostAlloc)                              \
  X(cuMemFreeHost)                               \
  X(cuMemHostRegister)                           \
  X(cuMemHostUnregister)                         \
  X(cuArray3DCreate)                             \
  X(cuArrayDestroy)                              \
  X(cuTexObjectCreate)                           \
  X(cuTexObjectDestroy)                          \
  X(cuSurfObjectCreate)                          \
  X(cuSurfObjectDestroy)                         \
  X(cuModuleLoadData)                            \
  X(cuLinkCreate)                                \
  X(cuLinkAddData)                               \
  X(cuLinkComplete)                              \
  X(cuLinkDestroy)                               \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuModuleGetFunctionCount)                    \
  X(cuModuleEnumerateFunctions)                  \
  X(cuFuncLoad)                                  \
  X(cuModuleGetGlobal)                           \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuFuncGetParamInfo)                          \
  X(cuLaunchKernel)                              \
  X(cuLaunchCooperativeKernel)                   \
  X(cuLaunchHostFunc)                            \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuStreamCreateWithPriority)                  \
  X(cuStreamDestroy)                             \
  X(cuStreamWaitEvent)                           \
  X(cuStreamWriteValue64)                        \
  X(cuStreamSynchronize)                         \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventQuery)                                \
  X(cuEventSynchronize)                          \
  X(cuEventElapsedTime)                          \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemcpy2DAsync)                             \
  X(cuMemsetD8Async)                             \
  X(cuMemsetD16Async)                            \
  X(cuMemsetD32Async)                            \
  X(cuMemsetD2D8Async)                           \
  X(cuMemsetD2D16Async)                          \
  X(cuMemsetD2D32Async)
// NOLINTEND(cppcoreguidelines-macro-usage)

struct Driver {
  // NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration
#define HEDDLE_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_CUDA_MEMBER)
#undef HEDDLE_CUDA_MEMBER

  // Loads libcuda and initialises it for this process. kNotFound where there is no driver or no GPU, kNotSupported
  // where the driver is too old: the text names the function that it lacks. HEDDLE_CUDA_LIBRARY, if set, is the file
  // to load (tests bring a driver of their own).
  static Result<Driver> load();

  // Ok for CUDA_SUCCESS, else an error: "WHAT: CUDA_ERROR_... (700): an illegal memory access was encountered".
  Status check(CUresult result, const char* what) const;
  // "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
  std::string text(CUresult result) const;
};

// After these the context is lost: everything later on it fails with the same code.
bool is_sticky(CUresult result);

}  // namespace heddle::cuda
