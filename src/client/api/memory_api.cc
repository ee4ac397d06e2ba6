// Device memory: cudaMalloc and its family, what is free, what a pointer is.

#include "client/context.h"
#include "client/graph/capture.h"
#include "client/graph/graph_memory.h"
#include "client/memory/host_registration.h"
#include "client/memory/memory_pool.h"

namespace heddle::client {
namespace {

constexpr size_t kPitchAlign = 512;  // as GPUs have had it since Fermi

// Gives back what pools and graphs keep for later. False: there was nothing.
bool free_unused(const VirtualDevice& device) {
  const bool trimmed = graph_memory().trim(device);
  return memory_pools().free_unused(device) || trimmed;
}

Answer<void*> allocate(size_t bytes) {
  HEDDLE_ANSWER(captures().check_unsafe());
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  auto address = (*device)->memory().allocate(bytes);
  if (!address && address.error().code == cudaErrorMemoryAllocation && free_unused(**device))
    address = (*device)->memory().allocate(bytes);
  if (!address) return tl::unexpected(std::move(address).error());
  return reinterpret_cast<void*>(*address);
}

Done allocate_into(void** pointer, size_t bytes) {
  if (!pointer) return refuse(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) {  // still a call that connects, and that shows errors
    auto device = runtime().current_device();
    return device ? (*device)->failure() : Done(tl::unexpected(std::move(device).error()));
  }
  auto address = allocate(bytes);
  if (!address) return tl::unexpected(std::move(address).error());
  *pointer = *address;
  return {};
}

// A pool's memory stays with the pool until the wait that cudaFree is gives it back; a graph's stays with the graph.
Done release_on(VirtualDevice& device, uint64_t address) {
  if (const auto of_graph = graph_memory().find(address)) {
    HEDDLE_ANSWER(device.synchronize());
    return graph_memory().free(of_graph, nullptr);
  }
  if (!memory_pools().own(address)) return device.memory().release(address);
  HEDDLE_ANSWER(device.synchronize());
  auto freed = memory_pools().free(address, nullptr);
  if (!freed) return tl::unexpected(std::move(freed).error());
  memory_pools().synchronized(device);
  return *freed ? Done{} : refuse(cudaErrorInvalidValue);
}

Done release(void* pointer) {
  if (!pointer) {
    auto device = runtime().current_device();
    return device ? Done{} : Done(tl::unexpected(std::move(device).error()));
  }
  HEDDLE_ANSWER(captures().check_unsafe());
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (!runtime().in_window(address)) return refuse(cudaErrorInvalidValue);
  const auto managed = runtime().managed_memory().find_anywhere(address);
  disown(Owned::kMemory, address);
  if (!managed) {
    VirtualDevice* const device = runtime().device_of(address);
    if (!device) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(release_on(*device, address));
    return runtime().managed_memory().release_spare();
  }
  if (managed->on_device) {
    HEDDLE_ANSWER(runtime().managed_memory().release(address));
  } else {
    HEDDLE_ANSWER(runtime().synchronize_all());
    HEDDLE_ANSWER(runtime().host_memory().release(address));
  }
  runtime().managed_hints.forget(address, managed->bytes);
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return answer([&] { return allocate_into(pointer, bytes); });
}

HEDDLE_EXPORT cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return answer([&]() -> Done {
    if (!pitch) return refuse(cudaErrorInvalidValue);
    *pitch = round_up(width, kPitchAlign);
    return allocate_into(pointer, *pitch * height);
  });
}

HEDDLE_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return answer([&]() -> Done {
    if (!pointer) return refuse(cudaErrorInvalidValue);
    pointer->pitch = round_up(extent.width, kPitchAlign);
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return allocate_into(&pointer->ptr, pointer->pitch * extent.height * extent.depth);
  });
}

HEDDLE_EXPORT cudaError_t cudaFree(void* pointer) {
  return answer([&] { return release(pointer); });
}

HEDDLE_EXPORT cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return answer([&]() -> Done {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto info = (*device)->session().memory_info((*device)->index());
    if (!info) return tl::unexpected(std::move(info).error());
    // heddled counts the side devices among the others where there is a budget for all of them.
    const uint64_t side_devices = (*device)->is_side_device() ? 0 : (*device)->memory().bytes_beside();
    const uint64_t live = std::max(info->others_bytes, side_devices) + (*device)->memory().used_bytes();
    if (total_bytes) *total_bytes = info->budget_bytes;
    if (free_bytes) *free_bytes = info->budget_bytes - std::min(live, info->budget_bytes);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return answer([&]() -> Done {
    if (!attributes) return refuse(cudaErrorInvalidValue);
    auto current = runtime().current_device();
    if (!current) return tl::unexpected(std::move(current).error());
    const auto address = reinterpret_cast<uint64_t>(pointer);
    auto* const bytes = const_cast<void*>(pointer);
    *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, bytes};  // -2: no device, as CUDA says it
    if (VirtualDevice* device = runtime().device_of(address)) {
      if (runtime().managed_memory().find(address))
        *attributes = {cudaMemoryTypeManaged, static_cast<int>(device->home().index()), bytes, bytes};
      else if (device->memory().buffer_at(address))
        *attributes = {cudaMemoryTypeDevice, static_cast<int>(device->home().index()), bytes, nullptr};
    } else if (runtime().in_window(address)) {
      if (const auto buffer = runtime().host_memory().find(address)) {
        const bool managed = buffer->flags & HostMemory::kManaged;
        *attributes = {managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost, static_cast<int>((*current)->index()),
                       bytes, bytes};
        if (const auto registered = host_registrations().find_pinned(address))
          attributes->hostPointer = reinterpret_cast<void*>(
              registered->address + (address - registered->device_address(registered->address)));
      }
    } else if (const auto registered = host_registrations().find(address)) {
      *attributes = {cudaMemoryTypeHost, static_cast<int>((*current)->index()),
                     registered->pinned ? reinterpret_cast<void*>(registered->device_address(address)) : nullptr,
                     bytes};
    } else if (auto place = place_of(pointer); place && place->kind == CopyPlace::kVariable) {
      *attributes = {cudaMemoryTypeDevice, static_cast<int>(place->device->index()), bytes, nullptr};
    }
    return {};
  });
}

}  // namespace heddle::client
