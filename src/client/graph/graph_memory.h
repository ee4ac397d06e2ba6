#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "client/graph/graph_types.h"
#include "client/stream_ref.h"

// Memory that graphs allocate and free: cudaGraphAddMemAllocNode and cudaMallocAsync in a stream that captures.
//
// An allocation gets its address when its node is made, and keeps it over all launches. Memory lies there from the
// first launch on. What a free node, cudaFreeAsync or cudaFree has freed stays where it is for the next launch of the
// same graph; a launch of another one that needs memory first gives back as much of what is idle behind it in its
// stream, so that graphs that run one after another together hold no more than the largest of them. All that is idle
// goes back by cudaDeviceGraphMemTrim, and when the device has no room left.
//
// Addresses are of graphs: two never share one. Within a graph an allocation may take the address of one that was freed
// before it (GraphAddresses). Memory is taken and given back by ranges of 2 MiB; small allocations of a graph share
// them.
//
// Thread safety: any thread. This lock is taken before the memory pools' and a device's.
namespace heddle::client {

// Addresses for which there is memory or not.
struct GraphRange {
  VirtualDevice* device = nullptr;
  uint64_t address = 0, bytes = 0;
  // Under the lock of GraphMemory.
  bool backed = false;
  uint32_t live = 0;                  // allocations in it
  std::map<uint32_t, uint64_t> used;  // by stream slot: the record behind which what lay here was freed

  GraphRange() = default;
  ~GraphRange();
  GraphRange(const GraphRange&) = delete;
  GraphRange& operator=(const GraphRange&) = delete;
};

// What one node allocates. It is live from a launch to its free; then nothing but the program may hold it.
struct GraphAllocation {
  std::shared_ptr<GraphRange> range;
  uint64_t address = 0, bytes = 0;
  bool taken_over = false;  // a later allocation of its graph has its address
};
using GraphAllocationPtr = std::shared_ptr<GraphAllocation>;

// Where the allocations of one graph lie.
class GraphAddresses {
 public:
  // `freed`: allocations of the same graph whose free comes before; the new one takes the address of one that fits.
  Answer<GraphAllocationPtr> place(VirtualDevice& device, uint64_t bytes, const std::vector<GraphAllocationPtr>& freed);

 private:
  std::shared_ptr<GraphRange> shared_;  // of small allocations
  uint64_t shared_used_ = 0;
};

class GraphMemory {
 public:
  // The allocation at exactly `address`, live or not; null where no graph's is.
  GraphAllocationPtr find(uint64_t address);
  bool is_live(const GraphAllocationPtr& allocation);

  // All of them become live, in order for work that follows in the stream; or none.
  Done allocate(const std::vector<GraphAllocationPtr>& allocations, const StreamRef& stream);
  // Behind the stream's work; the stream is null after a wait for everything. cudaErrorInvalidValue: it is not live.
  Done free(const GraphAllocationPtr& allocation, const StreamRef* stream);

  // Gives back what is idle. False: there was nothing.
  bool trim(const VirtualDevice& device);
  // All of the device's memory is gone.
  void forget(const VirtualDevice& device);

  Done get(const VirtualDevice& device, cudaGraphMemAttributeType attribute, void* value);
  Done set(const VirtualDevice& device, cudaGraphMemAttributeType attribute, const void* value);

 private:
  friend class GraphAddresses;
  friend struct GraphRange;

  Answer<std::shared_ptr<GraphRange>> reserve(VirtualDevice& device, uint64_t bytes);
  void ended(GraphRange& range);
  void know(const GraphAllocationPtr& allocation);

  // Under the lock.
  Done back(GraphRange& range, const StreamRef& stream);
  bool give_back(GraphRange& range);
  void make_way(uint64_t bytes, const StreamRef& stream);
  bool trim_locked(const VirtualDevice& device);
  uint64_t held(const VirtualDevice& device) const;

  std::atomic<bool> any_{false};
  std::mutex mutex_;                                                    // guards what follows
  std::unordered_map<uint64_t, std::weak_ptr<GraphAllocation>> known_;  // by address
  std::unordered_map<GraphAllocation*, GraphAllocationPtr> live_;
  std::map<uint64_t, GraphRange*> ranges_;              // by address
  std::map<const VirtualDevice*, uint64_t> held_high_;  // bytes
};

GraphMemory& graph_memory();

}  // namespace heddle::client
