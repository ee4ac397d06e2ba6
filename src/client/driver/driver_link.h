#pragma once

// What heddle's libcuda asks of heddle's libcudart in the same process, by the name heddle_driver_api: the functions of
// the driver API, which are all there. Internal: both come from one build, and the version says so.

#include <cstdint>

extern "C" {

struct heddle_driver_functions {
  uint32_t version;
  // Whether the program has used this runtime, or registered modules with it: of two that are loaded, the one to ask.
  bool (*in_use)();
  // Of that exact name (cuMemAlloc_v2); null: the driver has none.
  void* (*function)(const char* name);
};
inline constexpr uint32_t kHeddleDriverVersion = 1;

const heddle_driver_functions* heddle_driver_api();

}  // extern "C"
