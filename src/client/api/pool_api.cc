// Stream-ordered allocation and memory pools.

#include "client/api/submit.h"
#include "client/context.h"
#include "client/graph/memory_nodes.h"
#include "client/memory/managed_memory.h"
#include "client/memory/memory_pool.h"

namespace heddle::client {
namespace {

// In a stream that captures, the address is known at once, and the memory comes with the launches of the graph.
Answer<Work> capture_allocation(void** pointer, size_t bytes, cudaMemPool_t pool, const StreamRef& stream) {
  const Captures::Info info = captures().info(stream);
  if (!info.dependencies) return refuse(cudaErrorStreamCaptureInvalidated);
  VirtualDevice* device = stream.device;
  if (pool)
    HEDDLE_ANSWER(memory_pools().with(pool, [&](const MemoryPool& from) -> Done {
      device = from.device();
      return {};
    }));
  cudaMemAllocNodeParams p{};
  p.poolProps.allocType = cudaMemAllocationTypePinned;
  p.poolProps.location = {cudaMemLocationTypeDevice, static_cast<int>(device->home().index())};
  p.bytesize = bytes;
  auto work = alloc_work(*info.graph, *info.dependencies, p);
  *pointer = p.dptr;
  return work;
}

Answer<Work> capture_free(void* pointer, const StreamRef& stream) {
  const Captures::Info info = captures().info(stream);
  if (!info.graph) return refuse(cudaErrorStreamCaptureInvalidated);
  return free_work(*info.graph, reinterpret_cast<uint64_t>(pointer));
}

Done allocate_now(void** pointer, size_t bytes, cudaMemPool_t pool, const StreamRef& stream) {
  auto address = memory_pools().allocate(bytes, pool, stream);
  const bool full = !address && address.error().code == cudaErrorMemoryAllocation;
  if (full && graph_memory().trim(*stream.device)) address = memory_pools().allocate(bytes, pool, stream);
  if (!address) return tl::unexpected(std::move(address).error());
  *pointer = reinterpret_cast<void*>(*address);
  return {};
}

Done allocate(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  if (!pointer) return refuse(cudaErrorInvalidValue);
  *pointer = nullptr;
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  if (bytes == 0) return resolved->device->failure();
  return submit(
      *resolved, [&] { return capture_allocation(pointer, bytes, pool, *resolved); },
      [&] { return allocate_now(pointer, bytes, pool, *resolved); });
}

// Memory of cudaMalloc goes back too, behind all work that the program has called so far.
Done release_now(uint64_t address, const StreamRef& stream) {
  disown(Owned::kMemory, address);
  if (const auto of_graph = graph_memory().find(address)) return graph_memory().free(of_graph, &stream);
  auto freed = memory_pools().free(address, &stream);
  if (!freed) return tl::unexpected(std::move(freed).error());
  if (*freed) return {};
  if (runtime().managed_memory().find(address)) return refuse(cudaErrorInvalidValue);
  VirtualDevice* const device = runtime().device_of(address);
  return device ? device->memory().release_behind(address) : refuse(cudaErrorInvalidValue);
}

Done release(void* pointer, cudaStream_t stream) {
  auto resolved = enter_stream(stream);
  if (!resolved) return tl::unexpected(std::move(resolved).error());
  if (!pointer) return {};
  return submit(
      *resolved, [&] { return capture_free(pointer, *resolved); },
      [&] { return release_now(reinterpret_cast<uint64_t>(pointer), *resolved); });
}

template <class Body>
cudaError_t on_device(int index, Body&& body) {
  return answer([&]() -> Done {
    auto device = runtime().device(index);
    return device ? body(*device) : Done(tl::unexpected(std::move(device).error()));
  });
}

Done tell(cudaMemPool_t* pool, Answer<cudaMemPool_t> found) {
  if (!pool) return refuse(cudaErrorInvalidValue);
  if (!found) return tl::unexpected(std::move(found).error());
  *pool = *found;
  return {};
}

// Every device reaches its own pools, and no other's.
Done set_access(MemoryPool& pool, const cudaMemAccessDesc* descriptions, size_t count) {
  if (count > 0 && !descriptions) return refuse(cudaErrorInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    const auto& [location, flags] = descriptions[i];
    if (location.type != cudaMemLocationTypeDevice) return refuse(cudaErrorInvalidValue);
    const bool own = static_cast<uint32_t>(location.id) == pool.device()->index();
    if (own && flags != cudaMemAccessFlagsProtReadWrite) return refuse(cudaErrorInvalidDevice);
    if (!own && flags != cudaMemAccessFlagsProtNone)
      return refuse(cudaErrorInvalidDevice, "access to a memory pool from another device is not supported");
  }
  return {};
}

// The forms of CUDA 13 that name a location.
template <class Body>
cudaError_t at_location(const cudaMemLocation* location, cudaMemAllocationType type, Body&& body) {
  return answer([&]() -> Done {
    if (!location) return refuse(cudaErrorInvalidValue);
    if (location->type != cudaMemLocationTypeDevice || type != cudaMemAllocationTypePinned)
      return refuse(cudaErrorNotSupported, "memory pools other than of pinned memory of a device are not supported");
    auto device = runtime().device(location->id);
    return device ? body(*device) : Done(tl::unexpected(std::move(device).error()));
  });
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return answer([&] { return allocate(pointer, bytes, nullptr, stream); });
}

HEDDLE_EXPORT cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  return answer([&] { return pool ? allocate(pointer, bytes, pool, stream) : Done(refuse(cudaErrorInvalidValue)); });
}

HEDDLE_EXPORT cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return answer([&] { return release(pointer, stream); });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return answer(
      [&] { return props ? tell(pool, memory_pools().create(*props)) : Done(refuse(cudaErrorInvalidValue)); });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return answer([&] {
    disown(Owned::kPool, reinterpret_cast<uint64_t>(pool));
    return memory_pools().destroy(pool);
  });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return answer([&] {
    return memory_pools().with(pool, [&](MemoryPool& trimmed) -> Done {
      trimmed.trim(keep);
      return {};
    });
  });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer(
      [&] { return memory_pools().with(pool, [&](MemoryPool& changed) { return changed.set(attribute, value); }); });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return answer(
      [&] { return memory_pools().with(pool, [&](MemoryPool& asked) { return asked.get(attribute, value); }); });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions,
                                               size_t count) {
  return answer([&] {
    return memory_pools().with(pool, [&](MemoryPool& changed) { return set_access(changed, descriptions, count); });
  });
}

HEDDLE_EXPORT cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                               cudaMemLocation* location) {
  return answer([&] {
    return memory_pools().with(pool, [&](MemoryPool& asked) -> Done {
      if (!flags || !location || location->type != cudaMemLocationTypeDevice) return refuse(cudaErrorInvalidValue);
      const bool own = static_cast<uint32_t>(location->id) == asked.device()->index();
      *flags = own ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
      return {};
    });
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int index) {
  return on_device(index, [&](VirtualDevice* device) { return tell(pool, memory_pools().default_pool(device)); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int index) {
  return on_device(index, [&](VirtualDevice* device) { return tell(pool, memory_pools().current_pool(device)); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceSetMemPool(int index, cudaMemPool_t pool) {
  return on_device(index, [&](VirtualDevice* device) { return memory_pools().set_current(device, pool); });
}

HEDDLE_EXPORT cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, const cudaMemLocation* location,
                                                   cudaMemAllocationType type) {
  return at_location(location, type,
                     [&](VirtualDevice* device) { return tell(pool, memory_pools().default_pool(device)); });
}

HEDDLE_EXPORT cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, const cudaMemLocation* location,
                                            cudaMemAllocationType type) {
  return at_location(location, type,
                     [&](VirtualDevice* device) { return tell(pool, memory_pools().current_pool(device)); });
}

HEDDLE_EXPORT cudaError_t cudaMemSetMemPool(const cudaMemLocation* location, cudaMemAllocationType type,
                                            cudaMemPool_t pool) {
  return at_location(location, type, [&](VirtualDevice* device) { return memory_pools().set_current(device, pool); });
}

}  // namespace heddle::client
