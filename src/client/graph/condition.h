#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "client/graph/graph_types.h"
#include "client/stream/enqueue.h"

// What a conditional node of a graph decides by: 32 bits of pinned memory. The handle is their address, at which
// kernels write them (cudaGraphSetConditional, image/device_runtime.h) and the host reads them when the stream has come
// there.
namespace heddle::client {

class Condition {
 public:
  // On the current device. `assigned`: it is `value` at the beginning of each launch, and not only of the first one.
  static Answer<std::shared_ptr<Condition>> make(uint32_t value, bool assigned);
  // cudaErrorInvalidValue for a handle that is none.
  static Answer<std::shared_ptr<Condition>> find(cudaGraphConditionalHandle handle);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  cudaGraphConditionalHandle handle() const { return address_; }
  VirtualDevice& device() const { return device_; }
  // What kernels that are done have left there.
  uint32_t value() const;

  // Several instantiated graphs may decide by one condition: their launches take turns.
  class Uses {
   public:
    // `conditions` in the order of their addresses, so that no two launches wait for each other.
    explicit Uses(const std::vector<std::shared_ptr<Condition>>& conditions);

   private:
    std::vector<std::unique_lock<std::mutex>> locks_;
  };
  // What comes next in the stream comes behind the launch before, and finds the value that launches begin with.
  Done assign(const StreamRef& stream);
  void used_until(uint64_t sequence) { used_until_ = sequence; }

 private:
  Condition(VirtualDevice& device, uint64_t address, uint32_t value, bool assigned)
      : device_(device), address_(address), default_(value), assigned_(assigned) {}

  VirtualDevice& device_;
  const uint64_t address_;
  const uint32_t default_;
  const bool assigned_;
  std::mutex mutex_;         // held by a launch
  uint64_t used_until_ = 0;  // last record of the last launch
};

}  // namespace heddle::client
