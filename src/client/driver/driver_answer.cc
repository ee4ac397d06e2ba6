#include "client/driver/driver_answer.h"

#include "client/runtime.h"

namespace heddle::client {
namespace {

std::atomic<bool> initialized{false};

}  // namespace

void driver_is_initialized() {
  initialized.store(true, std::memory_order_release);
}

CUresult check_needs(Needs needs) {
  if (needs == Needs::kNothing) return CUDA_SUCCESS;
  if (!initialized.load(std::memory_order_acquire) && !runtime().connected()) [[unlikely]]
    return CUDA_ERROR_NOT_INITIALIZED;
  if (needs == Needs::kDriver) return CUDA_SUCCESS;
  const Context* const current = thread_place().context;
  if (!current) [[unlikely]]
    return CUDA_ERROR_INVALID_CONTEXT;
  return current->alive.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Done needs_context() {
  const CUresult missing = check_needs(Needs::kContext);
  return missing == CUDA_SUCCESS ? Done{} : refuse(static_cast<cudaError_t>(missing));
}

// The runtime's own codes are those below 100 and a few among the driver's.
CUresult driver_code(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidHostPointer:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidTexture:
    case cudaErrorInvalidTextureBinding:
    case cudaErrorInvalidChannelDescriptor:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidFilterSetting:
    case cudaErrorInvalidNormSetting:
      return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidSymbol:
      return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction:
      return CUDA_ERROR_INVALID_HANDLE;
    case cudaErrorMissingConfiguration:
      return CUDA_ERROR_LAUNCH_FAILED;
    default:
      return static_cast<CUresult>(code);
  }
}

CUresult driver_finish(const Failure& failure) {
  if (!failure.text.empty()) say_once(failure.text);
  return driver_code(failure.code);
}

CUresult driver_unsupported(const char* function) noexcept {
  return driver_answer(Needs::kNothing, [&]() -> Done {
    return refuse(cudaErrorNotSupported, std::string(function) + " is not supported (docs/driver-api.md)");
  });
}

}  // namespace heddle::client
