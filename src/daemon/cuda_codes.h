#pragma once

#include <cstdint>

#include "core/cuda_error.h"
#include "core/result.h"

namespace heddle::daemon {

// What a kernel has done that failed with this code.
inline const char* deed_of(uint32_t cuda_error) {
  switch (cuda_error) {
    case kCudaIllegalAddress:
      return "made an illegal memory access";
    case kCudaAssert:
      return "failed an assertion";
    case kCudaHardwareStackError:
      return "overflowed the hardware stack";
    case kCudaIllegalInstruction:
      return "executed an illegal instruction";
    case kCudaMisalignedAddress:
      return "accessed a misaligned address";
    case kCudaInvalidAddressSpace:
      return "used an invalid address space";
    case kCudaInvalidPc:
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
