#pragma once

#include <cstdint>

#include "core/result.h"

namespace heddle::daemon {

// The CUDA error codes that heddled itself gives to programs (CUDA runtime API, cudaError_t).
inline constexpr uint32_t kCudaMemoryAllocation = 2;
inline constexpr uint32_t kCudaInitializationError = 3;
inline constexpr uint32_t kCudaDevicesUnavailable = 46;
inline constexpr uint32_t kCudaNoDevice = 100;
inline constexpr uint32_t kCudaIllegalAddress = 700;
inline constexpr uint32_t kCudaLaunchFailure = 719;
inline constexpr uint32_t kCudaNotPermitted = 800;
inline constexpr uint32_t kCudaUnknown = 999;

// What a program sees of an error of the scheduler or of heddled.
inline uint32_t cuda_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kLimitExceeded:
      return kCudaMemoryAllocation;
    case ErrorCode::kNotFound:
      return kCudaNoDevice;
    case ErrorCode::kPermission:
    case ErrorCode::kProtocol:
      return kCudaNotPermitted;
    default:
      return kCudaUnknown;
  }
}

}  // namespace heddle::daemon
