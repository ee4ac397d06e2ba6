#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace heddle::cuda {
namespace {

// Where containers and WSL put it, if the loader's own path does not have it.
constexpr const char* kPlaces[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                   "/usr/lib/wsl/lib/libcuda.so.1"};

// heddle's own library of that name, which serves nothing: where heddled was started from a program under heddle run.
bool is_ours(void* library) {
  return ::dlsym(library, "heddle_library_client") != nullptr;
}

void* open_library() {
  if (const char* given = std::getenv("HEDDLE_CUDA_LIBRARY")) return ::dlopen(given, RTLD_NOW | RTLD_LOCAL);
  for (const char* place : kPlaces) {
    void* const library = ::dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (library && !is_ours(library)) return library;
    if (library) ::dlclose(library);
  }
  return nullptr;
}

ErrorCode code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
      return ErrorCode::kInvalidArgument;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::kOutOfMemory;
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return ErrorCode::kNotFound;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
      return ErrorCode::kCorrupt;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return ErrorCode::kLimitExceeded;
    case CUDA_ERROR_NOT_SUPPORTED:
      return ErrorCode::kNotSupported;
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
      return ErrorCode::kSystem;  // nothing has failed
    default:
      return is_sticky(result) ? ErrorCode::kDeviceFault : ErrorCode::kSystem;
  }
}

}  // namespace

// Two steps, so that a name that cuda.h defines as a versioned one is written out first.
#define HEDDLE_CUDA_STRING(name) #name
#define HEDDLE_CUDA_LOOK_UP(name)                                                                    \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, HEDDLE_CUDA_STRING(name))); \
  if (!driver.name)                                                                                  \
    return fail(ErrorCode::kNotSupported, "NVIDIA's driver has no %s: install a newer driver",       \
                HEDDLE_CUDA_STRING(name));

Result<Driver> Driver::load() {
  // Libraries load what they use of themselves: all of cuBLAS takes 0.5 GiB of a GPU (H200, CUDA 13.0). So do programs'
  // modules (program.cc).
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 0);
  void* library = open_library();  // stays for the process's life: the driver has threads and exit handlers
  if (!library) return fail(ErrorCode::kNotFound, "no NVIDIA driver on this machine: libcuda.so.1 is not to be found");
  Driver driver;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_CUDA_LOOK_UP)
  // kDeviceFault where MPS takes no client just now.
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS)
    return fail(code_of(result) == ErrorCode::kDeviceFault ? ErrorCode::kDeviceFault : ErrorCode::kNotFound,
                "the NVIDIA driver cannot be used: cuInit: %s", driver.text(result).c_str());
  return driver;
}

Status Driver::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return {};
  return fail(code_of(result), "%s: %s", what, text(result).c_str());
}

std::string Driver::text(CUresult result) const {
  const char *name = nullptr, *meaning = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &meaning);
  return stringf("%s (%d): %s", name ? name : "unknown error", static_cast<int>(result), meaning ? meaning : "?");
}

bool is_sticky(CUresult result) {
  const int code = static_cast<int>(result);
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      // Hardware exceptions of kernels, 714 to 718; what MPS does to its clients, 805 to 810.
      return (code >= 714 && code <= 718) || (code >= 805 && code <= 810);
  }
}

}  // namespace heddle::cuda
