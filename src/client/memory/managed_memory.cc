#include "client/memory/managed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/link/window_pages.h"

namespace heddle::client {

using protocol::FillRecord;
using protocol::Place;
using protocol::RecordType;

namespace {

// A region's arena has no records to wait for: release() waits for all work before a buffer's addresses are free.
constexpr uint64_t kAtOnce = 0;

// A second mapping of the shadow's pages, without access so far.
Done map_again(uint64_t shadow, uint64_t bytes, uint64_t address) {
  void* const wanted = reinterpret_cast<void*>(address);
  // Of a shared mapping, no bytes mean: leave the old one where it is.
  void* const mapped = ::mremap(reinterpret_cast<void*>(shadow), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
  if (mapped == wanted && ::mprotect(wanted, bytes, PROT_NONE) == 0) return {};
  return refuse(cudaErrorMemoryAllocation,
                stringf("cudaMallocManaged: %s cannot be mapped at 0x%llx: %s", to_string(Bytes{bytes}).c_str(),
                        static_cast<unsigned long long>(address), std::strerror(errno)));
}

Answer<uint64_t> fill_with_zeros(VirtualDevice& device, uint32_t slot, uint64_t address, uint64_t bytes) {
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kNo));
  auto record = device.reserve<FillRecord>(RecordType::kFill, slot);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->to = {Place::kWindow, 0, 0, 0, address, bytes, bytes};
  (*record)->width = bytes;
  (*record)->height = (*record)->depth = 1;
  (*record)->value = 0;
  (*record)->element_bytes = 1;
  return device.publish(slot);
}

}  // namespace

Done ManagedMemory::start_serving(VirtualDevice& device) {
  const std::lock_guard lock(mutex_);
  if (device_.load() != nullptr) return {};
  auto slot = device.open_stream(true, 0);
  if (!slot) return tl::unexpected(std::move(slot).error());
  slot_ = *slot;
  const protocol::Window& window = device.session().window();
  PageFaults::start(
      window.base, window.device_bytes, [this](const PageFault& fault) { return serve(fault); }, &posted,
      &touch_for_call, this);
  device_ = &device;
  return {};
}

Answer<std::unique_ptr<ManagedMemory::Region>> ManagedMemory::make_region(VirtualDevice& device, uint64_t bytes) {
  auto address = device.memory().allocate_alone(bytes);
  if (!address) return tl::unexpected(std::move(address).error());
  auto shadow = host_.allocate(device.index(), bytes, HostMemory::kPinned);
  Done made = shadow ? Done{} : Done(tl::unexpected(shadow.error()));
  if (made && shadow->new_segment != 0) made = device.task().need_segment(shadow->new_segment);
  if (made) made = map_again(shadow->address, bytes, *address);
  // Memory that was freed and allocated again has the contents of before.
  if (made) {
    const auto filled = fill_with_zeros(device, slot_, *address, bytes);
    if (filled) {
      const std::lock_guard lock(mutex_);
      last_push_ = std::max(last_push_.load(), *filled);  // others push meanwhile
    }
    if (!filled) made = tl::unexpected(filled.error());
  }
  if (made) return std::make_unique<Region>(device, *address, bytes, shadow->address);
  unmap_pages(*address, bytes);
  // The worker, told to wait for the shadow, has to see it first.
  if (shadow) (void)device.task().synchronize();
  if (shadow) (void)host_.release(shadow->address);
  (void)device.memory().release(*address);
  return tl::unexpected(std::move(made).error());
}

Done ManagedMemory::release_region(std::unique_ptr<Region> region) {
  unmap_pages(region->address, region->bytes);
  const Done released = region->device.memory().release(region->address);  // waits for all work
  const Done shadow = host_.release(region->shadow);
  return released ? shadow : released;
}

Answer<uint64_t> ManagedMemory::allocate(VirtualDevice& device, uint64_t bytes) {
  HEDDLE_ANSWER(start_serving(device));
  if (bytes < kOwnSegmentFrom) {
    const std::lock_guard lock(mutex_);
    if (const auto address = place_in_shared(bytes)) return *address;
  }
  if (bytes > ~uint64_t{0} - kSegmentBytes) return refuse(cudaErrorMemoryAllocation);
  auto region = make_region(device, round_up(bytes, kSegmentBytes));
  if (!region) return tl::unexpected(std::move(region).error());
  const std::lock_guard lock(mutex_);
  Arena& buffers = (*region)->buffers;
  regions_.emplace((*region)->address, std::move(*region));
  any_ = beside_device_ = true;
  return buffers.allocate(bytes, kAtOnce)->address;
}

std::optional<uint64_t> ManagedMemory::place_in_shared(uint64_t bytes) {
  for (auto& [base, region] : regions_) {
    if (const auto place = region->buffers.allocate(bytes, kAtOnce)) return place->address;
  }
  return std::nullopt;
}

Done ManagedMemory::release(uint64_t address) {
  const auto buffer = find(address);
  if (!buffer || buffer->address != address) return refuse(cudaErrorInvalidValue);
  // A push may wait in the ring of a task that has not begun.
  VirtualDevice* const device = device_.load();
  if (device->task().begun() || !device->ring().stream_reached(slot_, last_push_))
    HEDDLE_ANSWER(device->task().synchronize());
  std::unique_ptr<Region> empty;
  {
    const std::lock_guard lock(mutex_);
    Region* const region = region_at(address);
    if (!region || !region->buffers.release(address, kAtOnce)) return refuse(cudaErrorInvalidValue);
    if (region->buffers.buffer_count() > 0 || may_stay(*region)) return {};
    empty = take_out(*region);
  }
  HEDDLE_ANSWER(release_region(std::move(empty)));
  return release_spare();
}

bool ManagedMemory::is_spare(const Region& region) const {
  return region.buffers.buffer_count() == 0;
}

// One region of the size that small buffers share, beside other memory of the device.
bool ManagedMemory::may_stay(const Region& region) {
  const auto spares =
      std::count_if(regions_.begin(), regions_.end(), [this](const auto& each) { return is_spare(*each.second); });
  return region.bytes == kSegmentBytes && spares == 1 && region.device.memory().buffer_count() > regions_.size();
}

std::unique_ptr<ManagedMemory::Region> ManagedMemory::take_out(Region& region) {
  const auto held = regions_.find(region.address);
  std::unique_ptr<Region> taken = std::move(held->second);
  regions_.erase(held);
  any_ = !regions_.empty();
  note_holders();
  return taken;
}

Done ManagedMemory::release_spare() {
  if (!any()) return {};
  std::unique_ptr<Region> spare;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(regions_.begin(), regions_.end(), [this](const auto& each) { return is_spare(*each.second); });
    if (found == regions_.end() || found->second->device.memory().buffer_count() > regions_.size()) return {};
    spare = take_out(*found->second);
  }
  return release_region(std::move(spare));
}

Done ManagedMemory::release_all() {
  for (;;) {
    std::optional<uint64_t> address;
    std::unique_ptr<Region> spare;
    {
      const std::lock_guard lock(mutex_);
      if (regions_.empty()) return {};
      address = regions_.begin()->second->buffers.first_buffer();
      if (!address) spare = take_out(*regions_.begin()->second);
    }
    HEDDLE_ANSWER(spare ? release_region(std::move(spare)) : release(*address));
  }
}

std::optional<ManagedBuffer> ManagedMemory::find(uint64_t address) {
  if (!any()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const Region* const region = region_at(address);
  return region ? buffer_at(*region, address) : std::nullopt;
}

std::optional<ManagedBuffer> ManagedMemory::buffer_at(const Region& region, uint64_t address) {
  const Buffer* const buffer = region.buffers.buffer_at(address);
  return buffer ? std::optional(ManagedBuffer{buffer->address, buffer->bytes}) : std::nullopt;
}

std::optional<ManagedBuffer> ManagedMemory::find_anywhere(uint64_t address) {
  if (const auto on_device = find(address)) return on_device;
  const auto pinned = host_.owns(address) ? host_.find(address) : std::nullopt;
  if (!pinned || !(pinned->flags & HostMemory::kManaged)) return std::nullopt;
  return ManagedBuffer{pinned->address, pinned->bytes, false};
}

ManagedMemory::Region* ManagedMemory::region_at(uint64_t address) {
  const auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  Region* const region = std::prev(after)->second.get();
  return address - region->address < region->bytes ? region : nullptr;
}

}  // namespace heddle::client
