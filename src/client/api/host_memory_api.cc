// Pinned, managed and registered host memory.

#include "client/graph/capture.h"
#include "client/memory/host_registration.h"

namespace heddle::client {
namespace {

Done allocate(void** pointer, size_t bytes, HostMemory::Kind kind, unsigned flags) {
  if (!pointer) return refuse(cudaErrorInvalidValue);
  *pointer = nullptr;
  HEDDLE_ANSWER(captures().check_unsafe());
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  HEDDLE_ANSWER((*device)->failure());
  if (bytes == 0) return kind == HostMemory::kManaged ? refuse(cudaErrorInvalidValue) : Done{};
  auto place = runtime().host_memory().allocate((*device)->index(), bytes, kind | flags << HostMemory::kFlagShift);
  if (!place) return tl::unexpected(std::move(place).error());
  if (place->new_segment != 0) HEDDLE_ANSWER(runtime().announce_host_segment(place->new_segment));
  *pointer = reinterpret_cast<void*>(place->address);
  return {};
}

// Managed memory that the device holds; nullopt where it has to be host memory: what the device has no space for, too.
std::optional<uint64_t> allocate_on_device(const void* const* pointer, size_t bytes) {
  if (!pointer || bytes == 0 || !captures().check_unsafe()) return std::nullopt;
  auto device = runtime().current_device();
  if (!device || !(*device)->session().managed_on_device() || !(*device)->failure()) return std::nullopt;
  auto address = runtime().managed_memory().allocate((*device)->home(), bytes);
  return address ? std::optional(*address) : std::nullopt;
}

std::optional<Buffer> pinned_at(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return runtime().in_window(address) ? runtime().host_memory().find(address) : std::nullopt;
}

bool is_managed(const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  return runtime().in_window(address) && runtime().managed_memory().find(address);
}

Done register_memory(void* pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  if (!pointer || bytes == 0 || (flags & ~kKnown)) return refuse(cudaErrorInvalidValue);
  HEDDLE_ANSWER(captures().check_unsafe());
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  if (pinned_at(pointer)) return refuse(cudaErrorHostMemoryAlreadyRegistered);
  if (runtime().in_window(reinterpret_cast<uint64_t>(pointer))) return refuse(cudaErrorInvalidValue);
  if (flags & cudaHostRegisterIoMemory)
    return refuse(cudaErrorNotSupported,
                  "cudaHostRegister of device memory (cudaHostRegisterIoMemory) is not supported");
  return host_registrations().add((*device)->index(), reinterpret_cast<uint64_t>(pointer), bytes, flags);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return answer([&] { return allocate(pointer, bytes, HostMemory::kPinned, 0); });
}

HEDDLE_EXPORT cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return answer([&]() -> Done {
    if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
      return refuse(cudaErrorInvalidValue);
    return allocate(pointer, bytes, HostMemory::kPinned, flags);
  });
}

HEDDLE_EXPORT cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return answer([&]() -> Done {
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return refuse(cudaErrorInvalidValue);
    if (auto address = allocate_on_device(pointer, bytes)) {
      *pointer = reinterpret_cast<void*>(*address);
      return {};
    }
    return allocate(pointer, bytes, HostMemory::kManaged, 0);
  });
}

HEDDLE_EXPORT cudaError_t cudaFreeHost(void* pointer) {
  return answer([&]() -> Done {
    if (!pointer) return {};
    HEDDLE_ANSWER(captures().check_unsafe());
    const auto buffer = pinned_at(pointer);
    if (!buffer || buffer->address != reinterpret_cast<uint64_t>(pointer)) return refuse(cudaErrorInvalidValue);
    if (buffer->flags & HostMemory::kRegistered) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(runtime().synchronize_all());  // copies that wait in a ring read from it
    return runtime().host_memory().release(buffer->address);
  });
}

HEDDLE_EXPORT cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return answer([&]() -> Done {
    if (!device_pointer || flags != 0) return refuse(cudaErrorInvalidValue);
    if (pinned_at(pointer) || is_managed(pointer)) {
      *device_pointer = pointer;
      return {};
    }
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto address = host_registrations().device_address((*device)->index(), reinterpret_cast<uint64_t>(pointer));
    if (!address) return tl::unexpected(std::move(address).error());
    *device_pointer = reinterpret_cast<void*>(*address);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return answer([&]() -> Done {
    if (!flags) return refuse(cudaErrorInvalidValue);
    const auto registered = host_registrations().find(reinterpret_cast<uint64_t>(pointer));
    const auto buffer = registered ? std::nullopt : pinned_at(pointer);
    if (!registered && !buffer) return refuse(cudaErrorInvalidValue);
    *flags = registered ? registered->flags : (buffer->flags >> HostMemory::kFlagShift) | cudaHostAllocMapped;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return answer([&] { return register_memory(pointer, bytes, flags); });
}

HEDDLE_EXPORT cudaError_t cudaHostUnregister(void* pointer) {
  return answer([&]() -> Done {
    if (!pointer) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(captures().check_unsafe());
    return host_registrations().remove(reinterpret_cast<uint64_t>(pointer));
  });
}

}  // namespace heddle::client
