#pragma once

#include <map>
#include <unordered_map>

#include "client/memory/pool_types.h"
#include "client/stream_ref.h"

// Stream-ordered allocation: cudaMallocAsync and its pools.
//
// A pool keeps the buffers that were freed into it, each with the place in its stream where that happened. An
// allocation takes the smallest that is large enough and wastes no more than it uses; where the free is not done yet
// and was in another stream, the allocating stream first waits for it. What a pool keeps above its release threshold
// (0 unless the program sets one) goes back to the device when the program waits for something, as in CUDA, and all of
// it when the device has no space left for an allocation.
//
// Thread safety: any thread. The pools' lock is taken before a device's.
namespace heddle::client {

class MemoryPool {
 public:
  MemoryPool(VirtualDevice* device, uint64_t limit) : device_(device), limit_(limit) {}

  VirtualDevice* device() const { return device_; }

  // Under the pools' lock.
  Answer<uint64_t> allocate(uint64_t bytes, const StreamRef& stream);
  // Of a buffer that it gave out. The stream is null after a wait for everything.
  Done free(uint64_t address, const StreamRef* stream);
  // Gives free buffers back until no more than `keep` bytes are reserved.
  void trim(uint64_t keep);
  void trim_to_threshold() { trim(threshold_); }
  bool gave(uint64_t address) const { return used_.contains(address); }
  bool owns(uint64_t address) const;  // free ones too
  bool in_use() const { return !used_.empty(); }
  void forget();

  Done get(cudaMemPoolAttr attribute, void* value) const;
  Done set(cudaMemPoolAttr attribute, const void* value);

 private:
  // Free since record `sequence` of stream `slot`; 0: anybody may have it.
  struct Free {
    uint64_t address = 0, sequence = 0;
    uint32_t slot = 0;
  };
  std::optional<uint64_t> reuse(uint64_t bytes, const StreamRef& stream, Done& waited);
  Answer<uint64_t> reserve(uint64_t bytes);

  VirtualDevice* const device_;
  const uint64_t limit_;                // bytes reserved at most; 0: none
  std::map<uint64_t, uint64_t> used_;   // address -> bytes
  std::multimap<uint64_t, Free> free_;  // by bytes
  uint64_t threshold_ = 0;
  uint64_t used_bytes_ = 0, used_high_ = 0, reserved_bytes_ = 0, reserved_high_ = 0;
  int reuse_[3] = {1, 1, 1};  // cudaMemPoolReuse*: by events (always here), what is done, by waiting
};

class MemoryPools {
 public:
  bool any() const { return any_.load(std::memory_order_acquire); }

  Answer<cudaMemPool_t> create(const cudaMemPoolProps& props);
  // What it gave out stays until it is freed.
  Done destroy(cudaMemPool_t handle);
  Answer<cudaMemPool_t> default_pool(VirtualDevice* device);
  Answer<cudaMemPool_t> current_pool(VirtualDevice* device);
  Done set_current(VirtualDevice* device, cudaMemPool_t handle);

  // `handle` null: the stream's device's current pool.
  Answer<uint64_t> allocate(uint64_t bytes, cudaMemPool_t handle, const StreamRef& stream);
  bool own(uint64_t address);
  // False: no pool owns it.
  Answer<bool> free(uint64_t address, const StreamRef* stream);
  template <class Body>
  Done with(cudaMemPool_t handle, Body&& body) {
    const std::lock_guard lock(mutex_);
    const auto found = pools_.find(handle);
    return found == pools_.end() ? refuse(cudaErrorInvalidValue) : body(*found->second);
  }

  // The program has waited for something on the device.
  void synchronized(const VirtualDevice& device);
  // All of the device's memory is gone.
  void forget(const VirtualDevice& device);
  // Gives back everything that is free. False: there was nothing.
  bool free_unused(const VirtualDevice& device);

 private:
  struct OfDevice {
    cudaMemPool_t own = nullptr, current = nullptr;
  };
  cudaMemPool_t add(std::unique_ptr<MemoryPool> pool);
  OfDevice& of(VirtualDevice* device);
  MemoryPool* giver(uint64_t address);

  std::atomic<bool> any_{false};
  std::mutex mutex_;  // guards what follows
  std::unordered_map<cudaMemPool_t, std::unique_ptr<MemoryPool>> pools_;
  std::vector<std::unique_ptr<MemoryPool>> destroyed_;  // with buffers still out
  std::map<VirtualDevice*, OfDevice> devices_;
};

MemoryPools& memory_pools();

}  // namespace heddle::client
