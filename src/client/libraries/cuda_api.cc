// libcuda.so.1: in the place of NVIDIA's driver, for programs that link it, or look for it, without using it. heddle
// shares what goes through the CUDA runtime; the driver API would go past it. So every call answers
// CUDA_ERROR_NOT_SUPPORTED, and the first of each function says so on stderr. Nothing here looks for a device.

#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "client/libraries/driver_call.h"

namespace heddle::client {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotFound = 500, kNotSupported = 801;

struct Said {
  std::mutex mutex;
  std::set<std::string> names;
};
Said& said() {
  static auto* const all = new Said;  // programs call from their destructors
  return *all;
}

// One of the functions here, whatever version of it is meant; null where the driver has none of that name.
void* function_named(const char* name) {
  Dl_info own{};
  if (!::dladdr(reinterpret_cast<void*>(&driver_call), &own) || !own.dli_fname) return nullptr;
  void* const library = ::dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  void* const found = ::dlsym(library, name);
  ::dlclose(library);
  return found;
}

int find(const char* name, void** function, int* status) {
  constexpr int kFound = 0, kSymbolNotFound = 1;  // CUdriverProcAddressQueryResult
  if (!name || !function) return kInvalidValue;
  const std::string_view wanted(name);
  *function = wanted.starts_with("cu") ? function_named(name) : nullptr;
  if (status) *status = *function ? kFound : kSymbolNotFound;
  return *function ? kSuccess : kNotFound;
}

}  // namespace

int driver_call(const char* function) noexcept {
  try {
    Said& all = said();
    const std::lock_guard lock(all.mutex);
    if (!all.names.insert(function).second) return kNotSupported;
    std::fprintf(stderr,
                 "heddle: %s: the driver API is not shared, only programs that keep to the CUDA runtime are; run this "
                 "one without heddle, on a device of its own\n",
                 function);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody hears it
  }
  return kNotSupported;
}

// Looking a function up is no use of it yet.
HEDDLE_LIBRARY_EXPORT int cuGetProcAddress(const char* name, void** function, int, uint64_t) {
  return find(name, function, nullptr);
}

HEDDLE_LIBRARY_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, uint64_t, int* status) {
  return find(name, function, status);
}

// What programs print of the answer above.
HEDDLE_LIBRARY_EXPORT int cuGetErrorName(int error, const char** text) {
  if (!text) return kInvalidValue;
  *text = error == kNotSupported ? "CUDA_ERROR_NOT_SUPPORTED" : error == kSuccess ? "CUDA_SUCCESS" : nullptr;
  return *text ? kSuccess : kInvalidValue;
}

HEDDLE_LIBRARY_EXPORT int cuGetErrorString(int error, const char** text) {
  if (!text) return kInvalidValue;
  *text = error == kNotSupported ? "operation not supported" : error == kSuccess ? "no error" : nullptr;
  return *text ? kSuccess : kInvalidValue;
}

}  // namespace heddle::client

// By this the worker tells heddle's libraries from NVIDIA's.
HEDDLE_LIBRARY_EXPORT void heddle_library_client() {}
