// What differs between the libraries of CUDA 12 and 13, but for the properties: the version, and old names.

#include "client/answer.h"

namespace heddle::client {
namespace {

// The version that a library of this major version claims. The build says which one it is.
constexpr int kCudaVersion = HEDDLE_CUDART_MAJOR * 1000;

}  // namespace

HEDDLE_EXPORT cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return remember(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
  if (!version) return remember(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

#if HEDDLE_CUDART_MAJOR == 12
HEDDLE_EXPORT cudaError_t cudaDeviceSynchronize();
HEDDLE_EXPORT cudaError_t cudaDeviceReset();
HEDDLE_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

HEDDLE_EXPORT cudaError_t cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}

HEDDLE_EXPORT cudaError_t cudaThreadExit() {
  return cudaDeviceReset();
}

HEDDLE_EXPORT cudaError_t cudaEventElapsedTime_v2(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
#endif

}  // namespace heddle::client
