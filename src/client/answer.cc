#include "client/answer.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace heddle::client {
namespace {

thread_local cudaError_t t_last_error = cudaSuccess;

// Never destroyed: programs call CUDA from their own destructors.
struct Said {
  std::mutex mutex;
  std::set<std::string> lines;
};
Said& said() {
  static auto* const said = new Said;
  return *said;
}

}  // namespace

cudaError_t remember(cudaError_t code) {
  // "Not ready" is an answer, not an error: CUDA does not keep it either.
  if (code != cudaSuccess && code != cudaErrorNotReady) t_last_error = code;
  return code;
}

cudaError_t take_last_error() {
  const cudaError_t code = t_last_error;
  t_last_error = cudaSuccess;
  return code;
}

cudaError_t last_error() {
  return t_last_error;
}

void say_once(const std::string& text) {
  Said& all = said();
  const std::lock_guard lock(all.mutex);
  if (all.lines.insert(text).second) std::fprintf(stderr, "heddle: %s\n", text.c_str());
}

cudaError_t unsupported(const char* function) {
  return answer([&]() -> Done { return refuse(cudaErrorNotSupported, std::string(function) + " is not supported"); });
}

// As heddled itself answers (daemon/cuda_codes.h), and what else there may be means that it cannot be talked to.
cudaError_t cuda_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return cudaErrorInvalidValue;
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kLimitExceeded:
      return cudaErrorMemoryAllocation;
    case ErrorCode::kNotFound:
      return cudaErrorNoDevice;
    case ErrorCode::kNotSupported:
      return cudaErrorNotSupported;
    case ErrorCode::kPermission:
      return cudaErrorNotPermitted;
    case ErrorCode::kProtocol:
      return cudaErrorInitializationError;
    case ErrorCode::kInternal:
      return cudaErrorUnknown;
    default:
      return cudaErrorDevicesUnavailable;
  }
}

cudaError_t finish(const Failure& failure) {
  if (!failure.text.empty()) say_once(failure.text);
  return remember(failure.code);
}

}  // namespace heddle::client
