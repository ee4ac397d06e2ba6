#include "client/memory/memory_pool.h"

#include <algorithm>

#include "client/stream/enqueue.h"

namespace heddle::client {
namespace {

// As the arena places buffers: what they take of the device's memory.
uint64_t reserved_size(uint64_t bytes) {
  return bytes < kOwnSegmentFrom ? round_up(bytes, kBufferAlign) : round_up(bytes, kSegmentBytes);
}

}  // namespace

MemoryPools& memory_pools() {
  static auto* const all = new MemoryPools;
  return *all;
}

std::optional<uint64_t> MemoryPool::reuse(uint64_t bytes, const StreamRef& stream, Done& waited) {
  const auto found = free_.lower_bound(bytes);
  if (found == free_.end() || found->first > 2 * bytes) return std::nullopt;
  const auto [size, free] = *found;
  const bool behind = free.sequence == 0 || free.slot == stream.slot;
  const bool done = behind || (reuse_[1] && device_->ring().stream_reached(free.slot, free.sequence));
  if (!done && !reuse_[2]) return std::nullopt;
  if (!done) waited = enqueue_wait(stream, free.sequence);
  if (!waited) return std::nullopt;
  free_.erase(found);
  used_.emplace(free.address, size);
  used_bytes_ += size;
  return free.address;
}

Answer<uint64_t> MemoryPool::reserve(uint64_t bytes) {
  if (limit_ != 0 && bytes > limit_ - std::min(limit_, reserved_bytes_)) trim(limit_ - std::min(limit_, bytes));
  if (limit_ != 0 && bytes > limit_ - std::min(limit_, reserved_bytes_))
    return refuse(cudaErrorMemoryAllocation,
                  stringf("cudaMallocFromPoolAsync of %s: the pool holds %s of its %s", to_string(Bytes{bytes}).c_str(),
                          to_string(Bytes{reserved_bytes_}).c_str(), to_string(Bytes{limit_}).c_str()));
  auto address = device_->memory().allocate(bytes);
  if (!address) return address;
  used_.emplace(*address, bytes);
  used_bytes_ += bytes;
  reserved_bytes_ += bytes;
  return address;
}

Answer<uint64_t> MemoryPool::allocate(uint64_t bytes, const StreamRef& stream) {
  if (stream.device != device_)
    return refuse(cudaErrorNotSupported, "memory of a pool of another device than the stream's is not supported");
  const uint64_t size = reserved_size(bytes);
  Done waited;
  std::optional<uint64_t> address = reuse(size, stream, waited);
  HEDDLE_ANSWER(waited);
  if (!address) {
    auto reserved = reserve(size);
    if (!reserved) return reserved;
    address = *reserved;
  }
  used_high_ = std::max(used_high_, used_bytes_);
  reserved_high_ = std::max(reserved_high_, reserved_bytes_);
  return *address;
}

Done MemoryPool::free(uint64_t address, const StreamRef* stream) {
  Free free{address};
  if (stream && stream->device == device_) {
    auto sequence = last_of(*stream);
    if (!sequence) return tl::unexpected(std::move(sequence).error());
    free.sequence = *sequence;
    free.slot = stream->slot;
  } else if (stream) {
    HEDDLE_ANSWER(stream->device->synchronize());
  }
  const auto used = used_.find(address);
  used_bytes_ -= used->second;
  free_.emplace(used->second, free);
  used_.erase(used);
  return {};
}

void MemoryPool::trim(uint64_t keep) {
  for (auto next = free_.begin(); next != free_.end() && reserved_bytes_ > keep;) {
    if (!device_->memory().release_behind(next->second.address))
      return;  // the failure shows at the program's next call
    reserved_bytes_ -= next->first;
    next = free_.erase(next);
  }
}

bool MemoryPool::owns(uint64_t address) const {
  const auto is_free = [&](const auto& entry) { return entry.second.address == address; };
  return gave(address) || std::any_of(free_.begin(), free_.end(), is_free);
}

void MemoryPool::forget() {
  used_.clear();
  free_.clear();
  used_bytes_ = reserved_bytes_ = 0;
}

Done MemoryPool::get(cudaMemPoolAttr attribute, void* value) const {
  if (!value) return refuse(cudaErrorInvalidValue);
  if (attribute >= cudaMemPoolReuseFollowEventDependencies && attribute <= cudaMemPoolReuseAllowInternalDependencies) {
    *static_cast<int*>(value) = reuse_[attribute - cudaMemPoolReuseFollowEventDependencies];
    return {};
  }
  const uint64_t values[] = {threshold_, reserved_bytes_, reserved_high_, used_bytes_, used_high_};
  if (attribute < cudaMemPoolAttrReleaseThreshold || attribute > cudaMemPoolAttrUsedMemHigh)
    return refuse(cudaErrorInvalidValue);
  *static_cast<uint64_t*>(value) = values[attribute - cudaMemPoolAttrReleaseThreshold];
  return {};
}

// High marks can only be set back.
Done MemoryPool::set(cudaMemPoolAttr attribute, const void* value) {
  if (!value) return refuse(cudaErrorInvalidValue);
  if (attribute >= cudaMemPoolReuseFollowEventDependencies && attribute <= cudaMemPoolReuseAllowInternalDependencies) {
    reuse_[attribute - cudaMemPoolReuseFollowEventDependencies] = *static_cast<const int*>(value);
    return {};
  }
  const uint64_t wanted = *static_cast<const uint64_t*>(value);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    threshold_ = wanted;
  } else if (attribute == cudaMemPoolAttrReservedMemHigh && wanted == 0) {
    reserved_high_ = reserved_bytes_;
  } else if (attribute == cudaMemPoolAttrUsedMemHigh && wanted == 0) {
    used_high_ = used_bytes_;
  } else {
    return refuse(cudaErrorInvalidValue);
  }
  return {};
}

cudaMemPool_t MemoryPools::add(std::unique_ptr<MemoryPool> pool) {
  const auto handle = reinterpret_cast<cudaMemPool_t>(pool.get());
  pools_.emplace(handle, std::move(pool));
  any_.store(true, std::memory_order_release);
  return handle;
}

MemoryPools::OfDevice& MemoryPools::of(VirtualDevice* device) {
  OfDevice& known = devices_[device];
  if (!known.own) known.own = known.current = add(std::make_unique<MemoryPool>(device, 0));
  return known;
}

Answer<cudaMemPool_t> MemoryPools::create(const cudaMemPoolProps& props) {
  if (props.handleTypes != 0)
    return refuse(cudaErrorNotSupported, "memory pools shared between processes (handleTypes) are not supported");
  if (props.allocType != cudaMemAllocationTypePinned || props.location.type != cudaMemLocationTypeDevice)
    return refuse(cudaErrorNotSupported, "memory pools other than of pinned memory of a device are not supported");
  auto device = runtime().device(props.location.id);
  if (!device) return tl::unexpected(std::move(device).error());
  const std::lock_guard lock(mutex_);
  return add(std::make_unique<MemoryPool>(*device, props.maxSize));
}

Done MemoryPools::destroy(cudaMemPool_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  if (found == pools_.end()) return refuse(cudaErrorInvalidValue);
  OfDevice& known = of(found->second->device());
  if (known.own == handle) return refuse(cudaErrorInvalidValue);
  if (known.current == handle) known.current = known.own;
  found->second->trim(0);
  if (found->second->in_use()) destroyed_.push_back(std::move(found->second));
  pools_.erase(found);
  return {};
}

Answer<cudaMemPool_t> MemoryPools::default_pool(VirtualDevice* device) {
  const std::lock_guard lock(mutex_);
  return of(device).own;
}

Answer<cudaMemPool_t> MemoryPools::current_pool(VirtualDevice* device) {
  const std::lock_guard lock(mutex_);
  return of(device).current;
}

Done MemoryPools::set_current(VirtualDevice* device, cudaMemPool_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle);
  if (found == pools_.end() || found->second->device() != device) return refuse(cudaErrorInvalidValue);
  of(device).current = handle;
  return {};
}

Answer<uint64_t> MemoryPools::allocate(uint64_t bytes, cudaMemPool_t handle, const StreamRef& stream) {
  HEDDLE_ANSWER(stream.device->failure());
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(handle ? handle : of(stream.device).current);
  if (found == pools_.end()) return refuse(cudaErrorInvalidValue);
  auto address = found->second->allocate(bytes, stream);
  if (address || address.error().code != cudaErrorMemoryAllocation) return address;
  for (auto& [other, pool] : pools_) {
    if (pool->device() == stream.device) pool->trim(0);
  }
  return found->second->allocate(bytes, stream);
}

MemoryPool* MemoryPools::giver(uint64_t address) {
  for (auto& [handle, pool] : pools_) {
    if (pool->owns(address)) return pool.get();
  }
  for (auto& pool : destroyed_) {
    if (pool->owns(address)) return pool.get();
  }
  return nullptr;
}

bool MemoryPools::own(uint64_t address) {
  if (!any()) return false;
  const std::lock_guard lock(mutex_);
  return giver(address) != nullptr;
}

Answer<bool> MemoryPools::free(uint64_t address, const StreamRef* stream) {
  if (!any()) return false;
  const std::lock_guard lock(mutex_);
  MemoryPool* const pool = giver(address);
  if (!pool) return false;
  if (!pool->gave(address)) return refuse(cudaErrorInvalidValue);  // freed already
  HEDDLE_ANSWER(pool->free(address, stream));
  const auto gone =
      std::find_if(destroyed_.begin(), destroyed_.end(), [&](auto& other) { return other.get() == pool; });
  if (gone == destroyed_.end()) return true;
  pool->trim(0);
  if (!pool->in_use()) destroyed_.erase(gone);
  return true;
}

void MemoryPools::synchronized(const VirtualDevice& device) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  for (auto& [handle, pool] : pools_) {
    if (pool->device() == &device) pool->trim_to_threshold();
  }
}

void MemoryPools::forget(const VirtualDevice& device) {
  if (!any()) return;
  const std::lock_guard lock(mutex_);
  for (auto& [handle, pool] : pools_) {
    if (pool->device() == &device) pool->forget();
  }
  std::erase_if(destroyed_, [&](const auto& pool) { return pool->device() == &device; });
}

bool MemoryPools::free_unused(const VirtualDevice& device) {
  if (!any()) return false;
  const std::lock_guard lock(mutex_);
  bool made = false;
  for (auto& [handle, pool] : pools_) {
    if (pool->device() != &device) continue;
    pool->trim(0);
    made = true;
  }
  return made;
}

}  // namespace heddle::client
