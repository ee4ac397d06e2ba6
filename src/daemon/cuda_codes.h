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
inline constexpr uint32_t kCudaMpsClientTerminated = 810;
inline constexpr uint32_t kCudaUnknown = 999;

// What a kernel has done that failed with this code.
inline const char* deed_of(uint32_t cuda_error) {
  switch (cuda_error) {
    case kCudaIllegalAddress:
      return "made an illegal memory access";
    case 710:
      return "failed an assertion";
    case 714:
      return "overflowed the hardware stack";
    case 715:
      return "executed an illegal instruction";
    case 716:
      return "accessed a misaligned address";
    case 717:
      return "used an invalid address space";
    case 718:
      return "jumped to an invalid address";
    default:
      return "failed";
  }
}

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
