#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "client/answer.h"

namespace heddle::client {

// Memory of the program's own that it registered (cudaHostRegister).
//
// Copies from and to it are staged like those of any pageable memory. What kernels are to reach
// (cudaHostRegisterMapped, or a device address that is asked for later) is moved: its pages' contents go into a piece
// of pinned memory (host_memory.h), which is then mapped at the program's address too. The program sees what it saw
// before, and kernels reach the same bytes at the pinned memory's address, which is another one
// (cudaDevAttrCanUseHostPointerForRegisteredMem is 0). Unregistered, the pages become private memory again, with what
// they hold.
//
// Only memory that nobody else can see may be moved: private mappings of this process, readable and writable. Other
// threads may use the memory meanwhile: for the moment of the move it can only be read, and a thread that writes waits
// (page_move.h).
//
// Thread-safe; the lock is taken before host memory's and devices'.
class HostRegistrations {
 public:
  struct Range {
    uint64_t address = 0, bytes = 0;
    unsigned flags = 0;
    uint64_t pinned = 0;  // where the page of `address` lies in pinned memory; 0: not moved
    // Of an address in it, once it is moved.
    uint64_t device_address(uint64_t of) const { return pinned + (of - address / kPage * kPage); }
  };

  // For a program that uses `virtual_device`. cudaErrorHostMemoryAlreadyRegistered; what cannot be moved is
  // cudaErrorNotSupported where it has to be, and the text says why.
  Done add(uint32_t virtual_device, uint64_t address, uint64_t bytes, unsigned flags);
  // Waits for the device's work. cudaErrorHostMemoryNotRegistered for what is no range's start.
  Done remove(uint64_t address);
  // Moves the range if it was not yet. cudaErrorInvalidValue for what is not registered.
  Answer<uint64_t> device_address(uint32_t virtual_device, uint64_t address);
  // The range that holds `address`, or whose pinned memory does.
  std::optional<Range> find(uint64_t address);
  std::optional<Range> find_pinned(uint64_t address);

 private:
  static constexpr uint64_t kPage = 4096;

  Done move(uint32_t virtual_device, Range& range);
  Range* at(uint64_t address);

  std::mutex mutex_;
  std::map<uint64_t, Range> ranges_;  // by address
};

HostRegistrations& host_registrations();

}  // namespace heddle::client
