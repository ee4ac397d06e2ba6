#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace heddle::client {

// Unmaps pages of the session's window, whose addresses stay reserved: nothing else of the program is mapped there, and
// a touch is a fault. Where this fails the pages stay until something is mapped over them.
inline void unmap_pages(uint64_t address, uint64_t bytes) {
  (void)::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace heddle::client
