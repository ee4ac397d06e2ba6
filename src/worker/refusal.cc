#include "worker/refusal.h"

#include <cstdarg>
#include <cstdio>

namespace heddle::worker {
namespace {

Refusal build(uint32_t cuda_error, const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  return {cuda_error, text, false};
}

uint32_t cuda_error_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kCudaInvalidValue;
    case ErrorCode::kOutOfMemory:
      return kCudaMemoryAllocation;
    case ErrorCode::kLimitExceeded:
      return kCudaLaunchOutOfResources;
    case ErrorCode::kNotFound:
      return kCudaNoKernelImageForDevice;
    case ErrorCode::kCorrupt:
      return kCudaInvalidKernelImage;
    case ErrorCode::kNotSupported:
      return kCudaNotSupported;
    case ErrorCode::kDeviceFault:
      return kCudaLaunchFailure;
    default:
      return kCudaUnknown;
  }
}

}  // namespace

tl::unexpected<Refusal> malformed(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Refusal refusal = build(kCudaUnknown, format, arguments);
  va_end(arguments);
  return tl::unexpected(std::move(refusal));
}

tl::unexpected<Refusal> refused(uint32_t cuda_error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Refusal refusal = build(cuda_error, format, arguments);
  va_end(arguments);
  return tl::unexpected(std::move(refusal));
}

Refusal refusal_of(const char* what, const Error& error) {
  return {cuda_error_of(error.code), std::string(what) + ": " + error.text, error.code == ErrorCode::kDeviceFault};
}

}  // namespace heddle::worker
