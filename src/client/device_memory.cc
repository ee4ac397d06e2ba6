// VirtualDevice: its memory. What it costs is counted in segments, as heddled's ledger does.

#include "client/virtual_device.h"

namespace heddle::client {

Answer<uint64_t> VirtualDevice::allocate(uint64_t bytes) {
  const Lock lock(mutex);
  HEDDLE_ANSWER(failure());
  const uint64_t budget = session_.welcome().budget_bytes;
  const uint64_t live = arena_.segment_bytes();
  if (bytes > budget || live + arena_.would_add(bytes, committed()) > budget)
    return refuse(cudaErrorMemoryAllocation,
                  stringf("cudaMalloc of %s: the program holds %s of its %s on device %u (heddle run --mem)",
                          to_string(Bytes{bytes}).c_str(), to_string(Bytes{live}).c_str(),
                          to_string(Bytes{budget}).c_str(), index_));
  const auto place = arena_.allocate(bytes, committed());
  if (!place) return refuse(cudaErrorMemoryAllocation, "cudaMalloc: no addresses are left in the session's window");
  if (!place->new_segment) return place->address;
  place->segment->born = writer_.last_sequence();
  const Done created = task_.created(place->segment, session_.welcome().binds_at_malloc != 0);
  if (created) return place->address;
  arena_.release(place->address, 0);
  arena_.retire(place->segment, 0);
  return tl::unexpected(created.error());
}

Done VirtualDevice::release(uint64_t address) {
  {
    const Lock lock(mutex);
    const Buffer* buffer = arena_.buffer_at(address);
    if (!buffer || buffer->address != address) return refuse(cudaErrorInvalidValue);
  }
  if (task_begun()) HEDDLE_ANSWER(synchronize());

  const Lock lock(mutex);
  Segment* segment = arena_.release(address, writer_.last_sequence());
  if (!segment) return refuse(cudaErrorInvalidValue);
  if (segment->buffers > 0) return {};
  HEDDLE_ANSWER(task_.emptied(segment, segment->born != writer_.last_sequence()));
  // A worker that holds the program's variables stays until the session ends.
  if (arena_.buffer_count() == 0 && !worker_pinned_) return task_.all_freed();
  return {};
}

Done VirtualDevice::release_all() {
  for (;;) {
    std::optional<uint64_t> address;
    {
      const Lock lock(mutex);
      address = arena_.first_buffer();
    }
    if (!address) return {};
    HEDDLE_ANSWER(release(*address));
  }
}

Done VirtualDevice::need_segment(uint64_t number) {
  const Lock lock(mutex);
  if (!task_.begun()) return {};
  auto sequence = append(protocol::RecordType::kNeed, number);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

bool VirtualDevice::task_begun() {
  const Lock lock(mutex);
  return task_.begun();
}

bool VirtualDevice::covers(uint64_t address, uint64_t bytes) {
  const Lock lock(mutex);
  return arena_.covers(address, bytes);
}

std::optional<Buffer> VirtualDevice::buffer_at(uint64_t address) {
  const Lock lock(mutex);
  const Buffer* buffer = arena_.buffer_at(address);
  return buffer ? std::optional(*buffer) : std::nullopt;
}

uint64_t VirtualDevice::live_bytes() {
  const Lock lock(mutex);
  return arena_.segment_bytes();
}

}  // namespace heddle::client
