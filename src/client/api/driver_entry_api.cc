// cudaGetDriverEntryPoint: functions of the driver by their names. Those of heddle's libcuda, which lies beside this
// library: looking one up costs nothing, and a call says that the driver API is not shared.

#include <dlfcn.h>

#include <string>

#include "client/answer.h"

namespace heddle::client {
namespace {

constexpr int kFound = 0, kSymbolNotFound = 1;  // cudaDriverEntryPointQueryResult

// Never closed. Null where it is not there.
void* driver_library() {
  static void* const library = []() -> void* {
    Dl_info own{};
    if (!::dladdr(reinterpret_cast<void*>(&driver_library), &own) || !own.dli_fname) return nullptr;
    const std::string path = own.dli_fname;
    return ::dlopen((path.substr(0, path.rfind('/') + 1) + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

cudaError_t find(const char* symbol, void** function, int* status) {
  return answer([&]() -> Done {
    if (!symbol || !*symbol || !function) return refuse(cudaErrorInvalidValue);
    void* const library = driver_library();
    *function = library && std::string_view(symbol).starts_with("cu") ? ::dlsym(library, symbol) : nullptr;
    if (status) *status = *function ? kFound : kSymbolNotFound;
    return {};
  });
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                                  int* status) {
  return find(symbol, function, status);
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long,
                                                       int* status) {
  return find(symbol, function, status);
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                           unsigned long long, int* status) {
  return find(symbol, function, status);
}

HEDDLE_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned,
                                                                unsigned long long, int* status) {
  return find(symbol, function, status);
}

}  // namespace heddle::client
