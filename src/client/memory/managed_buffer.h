#pragma once

#include <cstdint>

namespace heddle::client {

// What one cudaMallocManaged made.
struct ManagedBuffer {
  uint64_t address = 0, bytes = 0;
  bool on_device = true;  // while kernels run; else it is pinned memory (HostMemory::kManaged)
};

}  // namespace heddle::client
