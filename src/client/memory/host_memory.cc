#include "client/memory/host_memory.h"

namespace heddle::client {

HostMemory::HostMemory(Session& session)
    : session_(session), arena_(session.window().base + session.window().device_bytes, session.window().host_bytes) {}

Answer<HostMemory::Place> HostMemory::allocate(uint32_t virtual_device, uint64_t bytes, unsigned flags) {
  const std::lock_guard lock(mutex_);
  const auto place = arena_.allocate(bytes, 0, flags);
  if (!place) return refuse(cudaErrorMemoryAllocation, "no addresses are left for pinned memory");
  if (!place->new_segment) return Place{place->address, 0};
  auto number = session_.map_host_segment(virtual_device, place->segment->address, place->segment->bytes);
  if (number) {
    place->segment->number = *number;
    return Place{place->address, *number};
  }
  arena_.release(place->address, 0);
  arena_.retire(place->segment, 0);
  return tl::unexpected(std::move(number).error());
}

Done HostMemory::release(uint64_t address) {
  const std::lock_guard lock(mutex_);
  Segment* segment = arena_.release(address, 0);
  if (!segment) return refuse(cudaErrorInvalidValue);
  if (segment->buffers > 0) return {};
  session_.unmap_host_segment(segment->number, segment->address, segment->bytes);
  arena_.retire(segment, 0);
  return {};
}

std::optional<Buffer> HostMemory::find(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const Buffer* buffer = arena_.buffer_at(address);
  return buffer ? std::optional(*buffer) : std::nullopt;
}

bool HostMemory::covers(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return arena_.covers(address, bytes);
}

}  // namespace heddle::client
