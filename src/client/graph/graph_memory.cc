#include "client/graph/graph_memory.h"

#include <algorithm>

#include "client/memory/memory_pool.h"
#include "client/stream/enqueue.h"

namespace heddle::client {
namespace {

bool is_behind(const GraphRange& range, const StreamRef& stream) {
  return std::all_of(range.used.begin(), range.used.end(), [&](const auto& use) {
    return use.first == stream.slot || range.device->ring().stream_reached(use.first, use.second);
  });
}

}  // namespace

// Never destroyed, like the graphs.
GraphMemory& graph_memory() {
  static auto* const all = new GraphMemory;
  return *all;
}

GraphRange::~GraphRange() {
  if (device) graph_memory().ended(*this);
}

Answer<GraphAllocationPtr> GraphAddresses::place(VirtualDevice& device, uint64_t bytes,
                                                 const std::vector<GraphAllocationPtr>& freed) {
  if (bytes > device.session().welcome().budget_bytes)
    return refuse(
        cudaErrorMemoryAllocation,
        stringf("an allocation of %s in a CUDA graph: a device has %s for this program",
                to_string(Bytes{bytes}).c_str(), to_string(Bytes{device.session().welcome().budget_bytes}).c_str()));
  const bool small = bytes < kOwnSegmentFrom;
  const uint64_t size = round_up(bytes, small ? kBufferAlign : kSegmentBytes);
  auto made = std::make_shared<GraphAllocation>();
  const auto fits = [&](const GraphAllocationPtr& old) {
    return !old->taken_over && old->range->device == &device && old->bytes >= size && old->bytes <= 2 * size;
  };
  if (const auto old = std::find_if(freed.begin(), freed.end(), fits); old != freed.end()) {
    *made = **old;
    (*old)->taken_over = true;
  } else if (small && shared_ && shared_->device == &device && shared_used_ + size <= shared_->bytes) {
    *made = {shared_, shared_->address + shared_used_, size};
    shared_used_ += size;
  } else {
    auto range = graph_memory().reserve(device, round_up(size, kSegmentBytes));
    if (!range) return tl::unexpected(std::move(range).error());
    *made = {*range, (*range)->address, size};
    if (small) {
      shared_ = *range;
      shared_used_ = size;
    }
  }
  graph_memory().know(made);
  return made;
}

Answer<std::shared_ptr<GraphRange>> GraphMemory::reserve(VirtualDevice& device, uint64_t bytes) {
  auto address = device.memory().reserve_addresses(bytes);
  if (!address) return tl::unexpected(std::move(address).error());
  auto range = std::make_shared<GraphRange>();
  range->device = &device;
  range->address = *address;
  range->bytes = bytes;
  const std::lock_guard lock(mutex_);
  ranges_.emplace(*address, range.get());
  return range;
}

void GraphMemory::ended(GraphRange& range) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(range.address);
  give_back(range);
  range.device->memory().unreserve(range.address);
}

void GraphMemory::know(const GraphAllocationPtr& allocation) {
  const std::lock_guard lock(mutex_);
  known_[allocation->address] = allocation;
  any_.store(true, std::memory_order_release);
}

GraphAllocationPtr GraphMemory::find(uint64_t address) {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(address);
  if (found == known_.end()) return nullptr;
  auto allocation = found->second.lock();
  if (!allocation) known_.erase(found);
  return allocation;
}

bool GraphMemory::is_live(const GraphAllocationPtr& allocation) {
  const std::lock_guard lock(mutex_);
  return live_.contains(allocation.get());
}

Done GraphMemory::allocate(const std::vector<GraphAllocationPtr>& allocations, const StreamRef& stream) {
  const std::lock_guard lock(mutex_);
  for (auto next = allocations.begin(); next != allocations.end(); ++next) {
    ++(*next)->range->live;  // first: what is live is not given back for another
    Done backed = back(*(*next)->range, stream);
    if (backed) continue;
    for (auto undone = allocations.begin(); undone <= next; ++undone) --(*undone)->range->live;
    return backed;
  }
  for (const auto& allocation : allocations) live_.emplace(allocation.get(), allocation);
  return {};
}

Done GraphMemory::back(GraphRange& range, const StreamRef& stream) {
  VirtualDevice& device = *range.device;
  std::erase_if(range.used, [&](const auto& use) { return device.ring().stream_reached(use.first, use.second); });
  for (const auto& [slot, sequence] : range.used) {
    if (slot != stream.slot) HEDDLE_ANSWER(enqueue_wait(stream, sequence));
  }
  if (range.backed) return {};
  make_way(range.bytes, stream);
  Done backed = device.memory().back(range.address, range.bytes);
  if (!backed && backed.error().code == cudaErrorMemoryAllocation) {
    trim_locked(device);
    memory_pools().free_unused(device);
    backed = device.memory().back(range.address, range.bytes);
  }
  HEDDLE_ANSWER(backed);
  range.backed = true;
  uint64_t& high = held_high_[&device];
  high = std::max(high, held(device));
  return {};
}

// Memory goes back behind everything that was called so far: the record says so, and nobody waits here.
bool GraphMemory::give_back(GraphRange& range) {
  if (!range.backed) return false;
  (void)range.device->memory().release_behind(range.address);  // a failure shows at the program's next call
  range.backed = false;
  return true;
}

void GraphMemory::make_way(uint64_t bytes, const StreamRef& stream) {
  uint64_t made = 0;
  for (const auto& [address, range] : ranges_) {
    if (made >= bytes) return;
    const bool idle = range->device == stream.device && range->live == 0 && is_behind(*range, stream);
    if (idle && give_back(*range)) made += range->bytes;
  }
}

Done GraphMemory::free(const GraphAllocationPtr& allocation, const StreamRef* stream) {
  GraphRange& range = *allocation->range;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(allocation.get());
  if (found == live_.end())
    return refuse(
        cudaErrorInvalidValue,
        stringf("memory of a CUDA graph at 0x%llx is freed, but not allocated: no launch has allocated it, or "
                "it was freed already",
                static_cast<unsigned long long>(allocation->address)));
  if (stream && stream->device == range.device) {
    auto last = last_of(*stream);
    if (!last) return tl::unexpected(std::move(last).error());
    range.used[stream->slot] = *last;
  } else if (stream) {
    HEDDLE_ANSWER(stream->device->synchronize());
  }
  live_.erase(found);  // the caller holds it
  --range.live;
  return {};
}

bool GraphMemory::trim_locked(const VirtualDevice& device) {
  bool made = false;
  for (const auto& [address, range] : ranges_) {
    if (range->device == &device && range->live == 0) made |= give_back(*range);
  }
  return made;
}

bool GraphMemory::trim(const VirtualDevice& device) {
  const std::lock_guard lock(mutex_);
  return trim_locked(device);
}

void GraphMemory::forget(const VirtualDevice& device) {
  std::vector<GraphAllocationPtr> gone;  // ends without the lock
  const std::lock_guard lock(mutex_);
  for (auto next = live_.begin(); next != live_.end();) {
    const bool mine = next->second->range->device == &device;
    if (mine) gone.push_back(std::move(next->second));
    next = mine ? live_.erase(next) : std::next(next);
  }
  for (const auto& [address, range] : ranges_) {
    if (range->device != &device) continue;
    range->backed = false;
    range->live = 0;
  }
}

uint64_t GraphMemory::held(const VirtualDevice& device) const {
  uint64_t bytes = 0;
  for (const auto& [address, range] : ranges_) bytes += range->device == &device && range->backed ? range->bytes : 0;
  return bytes;
}

// What is used and what is reserved are the same here: memory comes by ranges of graphs.
Done GraphMemory::get(const VirtualDevice& device, cudaGraphMemAttributeType attribute, void* value) {
  if (!value || attribute < cudaGraphMemAttrUsedMemCurrent || attribute > cudaGraphMemAttrReservedMemHigh)
    return refuse(cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  const bool high = attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
  *static_cast<uint64_t*>(value) = high ? held_high_[&device] : held(device);
  return {};
}

// High marks can only be set back.
Done GraphMemory::set(const VirtualDevice& device, cudaGraphMemAttributeType attribute, const void* value) {
  const bool high = attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
  if (!value || !high || *static_cast<const uint64_t*>(value) != 0) return refuse(cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  held_high_[&device] = held(device);
  return {};
}

}  // namespace heddle::client
