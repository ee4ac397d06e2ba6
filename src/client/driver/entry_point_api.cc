// The runtime's own ways to the driver: cudaGetDriverEntryPoint, for libraries that call the driver without linking it
// (CCCL), and heddle_driver_api for heddle's libcuda.

#include "client/driver/contexts.h"
#include "client/driver/driver_link.h"
#include "client/driver/functions.h"
#include "client/driver/modules.h"
#include "client/driver/proc_address.h"
#include "client/driver/runtime_functions.h"
#include "client/runtime.h"
#include "client/stream/launch.h"

namespace heddle::client {
namespace {

constexpr unsigned long long kPerThread = 2, kMostFlags = 2;  // cudaEnablePerThreadDefaultStream

// The driver is initialized by it, as natively: CCCL calls functions that it has found at once.
Done find(const char* symbol, void** function, int version, unsigned long long flags, int* status) {
  if (!symbol || !*symbol || !function || flags > kMostFlags) return refuse(cudaErrorInvalidValue);
  if (auto session = runtime().session(); !session) return tl::unexpected(std::move(session).error());
  const FoundFunction found = find_driver_function(symbol, version, flags == kPerThread);
  *function = found.function;
  if (status) *status = found.result;
  if (!status && !found.function) return refuse(cudaErrorSymbolNotFound);
  return {};
}

// As the runtime's own version means it.
Done find_current(const char* symbol, void** function, unsigned long long flags, int* status) {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  return find(symbol, function, version, flags, status);
}

unsigned long long per_thread_unless_said(unsigned long long flags) {
  return flags == 0 ? kPerThread : flags;
}

bool in_use() {
  return runtime().connected() || runtime().registry.has_registered_modules();
}

void* function_named(const char* name) {
  try {
    return driver_function(name);
  } catch (...) {  // no memory
    return nullptr;
  }
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                                  int* status) {
  return answer([&] { return find_current(symbol, function, flags, status); });
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                                                       int* status) {
  return answer([&] { return find_current(symbol, function, per_thread_unless_said(flags), status); });
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                           unsigned long long flags, int* status) {
  return answer([&] { return find(symbol, function, static_cast<int>(version), flags, status); });
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned version,
                                                                unsigned long long flags, int* status) {
  return answer(
      [&] { return find(symbol, function, static_cast<int>(version), per_thread_unless_said(flags), status); });
}

// The CUfunction of a kernel that nvcc's startup code registered.
HEDDLE_EXPORT cudaError_t cudaGetFuncBySymbol(CUfunction* to, const void* symbol) {
  return answer([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto function = prepared_function(symbol);
    if (!function) return tl::unexpected(std::move(function).error());
    *to = reinterpret_cast<CUfunction>(*function);
    return {};
  });
}

HEDDLE_EXPORT const heddle_driver_functions* heddle_driver_api() {
  static constexpr heddle_driver_functions kFunctions{kHeddleDriverVersion, in_use, function_named};
  return &kFunctions;
}

}  // namespace heddle::client
