#pragma once

#include <mutex>
#include <optional>

#include "client/answer.h"
#include "client/link/arena.h"
#include "client/link/session.h"

namespace heddle::client {

// Pinned memory: the host part of the window, mapped at the same address here and in every worker of the session.
// Managed memory is this too. Thread-safe; the lock is taken before the session's and never with a device's.
class HostMemory {
 public:
  explicit HostMemory(Session& session);

  // What the allocation was made as, given back by find().
  enum Kind : unsigned { kPinned = 1, kManaged = 2, kRegistered = 4 };
  // For a program that uses `virtual_device`, which is open. `flags`: a Kind, and the caller's own flags above
  // kFlagShift.
  static constexpr unsigned kFlagShift = 8;

  // `new_segment` is the number of the segment that had to be declared for it, or 0.
  struct Place {
    uint64_t address, new_segment;
  };
  Answer<Place> allocate(uint32_t virtual_device, uint64_t bytes, unsigned flags);
  // No work that touches it may be left. cudaErrorInvalidValue for what is no allocation's start.
  Done release(uint64_t address);
  std::optional<Buffer> find(uint64_t address);
  bool covers(uint64_t address, uint64_t bytes);
  bool owns(uint64_t address) const { return arena_.owns(address); }

 private:
  Session& session_;
  std::mutex mutex_;
  Arena arena_;
};

}  // namespace heddle::client
