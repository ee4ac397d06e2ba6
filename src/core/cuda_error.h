#pragma once

#include <cstdint>

namespace heddle {

// CUDA's error numbers (CUDA Runtime API, enum cudaError) as far as heddle itself gives them to programs: the only
// table of them beside the client's, which has NVIDIA's header.
enum CudaError : uint32_t {
  kCudaInvalidValue = 1,
  kCudaMemoryAllocation = 2,
  kCudaInitializationError = 3,
  kCudaInvalidConfiguration = 9,
  kCudaDevicesUnavailable = 46,
  kCudaInvalidDeviceFunction = 98,
  kCudaNoDevice = 100,
  kCudaInvalidKernelImage = 200,
  kCudaNoKernelImageForDevice = 209,
  kCudaIllegalAddress = 700,
  kCudaLaunchOutOfResources = 701,
  kCudaLaunchTimeout = 702,
  kCudaAssert = 710,
  kCudaHardwareStackError = 714,
  kCudaIllegalInstruction = 715,
  kCudaMisalignedAddress = 716,
  kCudaInvalidAddressSpace = 717,
  kCudaInvalidPc = 718,
  kCudaLaunchFailure = 719,
  kCudaNotPermitted = 800,
  kCudaNotSupported = 801,
  kCudaMpsClientTerminated = 810,
  kCudaUnknown = 999,
};

}  // namespace heddle
