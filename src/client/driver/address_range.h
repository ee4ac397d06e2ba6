#pragma once

#include <optional>

#include "client/runtime.h"

namespace heddle::client {

// The allocation that holds an address.
struct AddressRange {
  enum class Kind { kDevice, kHost, kManaged, kVariable };
  Kind kind = Kind::kDevice;
  uint64_t address = 0, bytes = 0;
  int device = 0;               // the owner; for host memory the current device
  uint64_t host = 0, seen = 0;  // where the host, and where kernels find the address that was asked for; 0: nowhere
};
// Nothing where it lies in no memory that the program has of CUDA.
std::optional<AddressRange> range_at(uint64_t address);

}  // namespace heddle::client
