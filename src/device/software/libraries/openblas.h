#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/result.h"

namespace heddle::software {

// OpenBLAS, loaded at run time: the build needs nothing, and a machine without it only lacks cuBLAS. By its Fortran
// interface, whose subroutines take the same arguments in the same order as cuBLAS's functions.
class Openblas {
 public:
  // `threads`: how many it may use. kNotFound says what to install.
  static Result<Openblas> load(uint32_t threads, const char* file = "libopenblas.so.0");

  // "OpenBLAS 0.3.21 ..."
  const std::string& version() const { return version_; }
  // A subroutine of the library by its symbol; null where it has none.
  void* function(const char* symbol) const;

 private:
  void* library_ = nullptr;  // stays for the process's life: it has threads
  std::string version_;
};

}  // namespace heddle::software
