#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/transfer.h"

namespace heddle::cuda {

// Pinned buffers for copies whose host end is not registered: the driver would make the caller wait for those. A buffer
// is used again, and never freed while the context lives, since freeing one waits for the whole device.
//
// Thread safety: the owner's lock.
class StagingPool {
 public:
  struct Buffer {
    void* data = nullptr;
    uint64_t bytes = 0;
  };

  explicit StagingPool(const Driver& driver) : driver_(driver) {}
  // Nothing may be in flight.
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // kOutOfMemory, with what is in use.
  Result<Buffer> take(uint64_t bytes);
  void give_back(const Buffer& buffer) { free_.push_back(buffer); }
  // For a process that is about to end with work in flight.
  void abandon() { free_.clear(); }

 private:
  const Driver& driver_;
  std::vector<Buffer> free_;
  uint64_t allocated_ = 0;
};

// One staged copy, from the call until its operation has completed. The processor's part runs on the driver's own
// thread when the stream arrives there, so that the bytes are those of that moment.
struct StagedCopy {
  device::CopyShape on_host;  // between the program's memory and the buffer
  StagingPool::Buffer buffer;
};

// Puts a copy with an unregistered host end on the stream. `staged` must stay where it is until the stream has passed.
CUresult enqueue_staged(const Driver& driver, CUstream stream, device::CopyDirection direction,
                        const device::CopyShape& shape, StagedCopy& staged);

}  // namespace heddle::cuda
