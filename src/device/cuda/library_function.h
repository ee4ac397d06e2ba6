#pragma once

#include <dlfcn.h>

#include "core/result.h"

// Functions of NVIDIA's libraries by their names.
namespace heddle::cuda {

// A function of a library by its name, to be called with these arguments. Not found: kInternal (a status of its own,
// cuBLAS's and cuRAND's alike is positive).
inline constexpr int kMissing = -1;
template <class... Arguments>
int invoke(void* library, const char* name, Arguments... arguments) {
  void* function = ::dlsym(library, name);
  return function ? reinterpret_cast<int (*)(Arguments...)>(function)(arguments...) : kMissing;
}

inline Status check(const char* function, int status) {
  if (status == 0) return {};
  if (status == kMissing) return fail(ErrorCode::kNotSupported, "%s: this version of the library lacks it", function);
  return fail(ErrorCode::kDeviceFault, "%s: the library answered status %d", function, status);
}

}  // namespace heddle::cuda
