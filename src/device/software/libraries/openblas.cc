#include "device/software/libraries/openblas.h"

#include <dlfcn.h>

#include <cstdlib>

namespace heddle::software {

Result<Openblas> Openblas::load(uint32_t threads, const char* file) {
  // Read where it is loaded: without it there would be a thread for each processor.
  ::setenv("OPENBLAS_NUM_THREADS", std::to_string(threads).c_str(), 1);
  Openblas loaded;
  loaded.library_ = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!loaded.library_)
    return fail(ErrorCode::kNotFound,
                "software devices calculate by OpenBLAS, and %s is not to be found: install the package "
                "libopenblas0-pthread",
                file);
  auto* const config = reinterpret_cast<char* (*)()>(loaded.function("openblas_get_config"));
  loaded.version_ = config ? config() : file;
  return loaded;
}

void* Openblas::function(const char* symbol) const {
  return ::dlsym(library_, symbol);
}

}  // namespace heddle::software
