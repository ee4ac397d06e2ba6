#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::client {

// What every function of heddle's libcuda does: says its name, once, and returns CUDA_ERROR_NOT_SUPPORTED.
int driver_call(const char* function) noexcept;

}  // namespace heddle::client

// Marks the functions that tenants see.
#define HEDDLE_LIBRARY_EXPORT extern "C" __attribute__((visibility("default")))
