#pragma once

#include <string>

#include "client/redirect/elf_file.h"

namespace heddle::redirect {

// What a loaded object is to heddle.
struct Finding {
  enum class Kind {
    kNothing,   // no CUDA in it, or only calls of a shared runtime
    kRuntime,   // contains the CUDA runtime, with symbols: `major` says which
    kStripped,  // contains it without symbols: its calls cannot be found
    kRefused,   // needs `library`, which would go past heddle to the driver
  };
  Kind kind = Kind::kNothing;
  int major = 0;
  std::string library;
};

Finding scan(const ElfFile& file);

// Whether it is the driver's library that is named, with its place or without.
bool is_driver(std::string_view file_name);

// Whether a library of this file name goes past heddle: cuDNN, NCCL, and the driver where it is named with its place.
// Without a place the loader finds heddle's libcuda first.
bool goes_past_heddle(std::string_view file_name);

// A function of the runtime that programs call or that nvcc's code calls.
bool is_runtime_function(std::string_view name);

}  // namespace heddle::redirect
