#include "client/memory/host_registration.h"

#include <algorithm>

#include "client/memory/page_move.h"
#include "client/runtime.h"

namespace heddle::client {

// Never destroyed.
HostRegistrations& host_registrations() {
  static auto* const all = new HostRegistrations;
  return *all;
}

HostRegistrations::Range* HostRegistrations::at(uint64_t address) {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  Range& range = std::prev(after)->second;
  return address - range.address < range.bytes ? &range : nullptr;
}

Done HostRegistrations::add(uint32_t virtual_device, uint64_t address, uint64_t bytes, unsigned flags) {
  if (address + bytes < address) return refuse(cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.lower_bound(address);
  if (at(address) || (next != ranges_.end() && next->first < address + bytes))
    return refuse(cudaErrorHostMemoryAlreadyRegistered);
  Range range{address, bytes, flags, 0};
  if (flags & cudaHostRegisterMapped) HEDDLE_ANSWER(move(virtual_device, range));
  ranges_[address] = range;
  return {};
}

Done HostRegistrations::move(uint32_t virtual_device, Range& range) {
  const uint64_t from = range.address / kPage * kPage;
  const uint64_t bytes = round_up(range.address + range.bytes, kPage) - from;
  const auto refused = [&](const std::string& why) {
    return refuse(
        cudaErrorNotSupported,
        stringf("cudaHostRegister: %llu bytes at 0x%llx cannot be mapped for kernels: ",
                static_cast<unsigned long long>(range.bytes), static_cast<unsigned long long>(range.address)) +
            why + "; use cudaHostAlloc");
  };
  for (const auto& [address, other] : ranges_) {
    const uint64_t end = round_up(address + other.bytes, kPage);
    if (other.pinned != 0 && address / kPage * kPage < from + bytes && end > from)
      return refused("it shares a page with memory that is registered");
  }
  if (const std::string why = obstacle_to_move(from, bytes); !why.empty()) return refused(why);
  // Pages of its own.
  auto place = runtime().host_memory().allocate(virtual_device, std::max(bytes, kOwnSegmentFrom),
                                                HostMemory::kRegistered | range.flags << HostMemory::kFlagShift);
  if (!place) return tl::unexpected(std::move(place).error());
  Done announced;
  if (place->new_segment != 0) announced = runtime().announce_host_segment(place->new_segment);
  const bool moved =
      announced && move_pages_out(from, bytes, reinterpret_cast<void*>(place->address));  // NOLINT: an address
  if (!moved) {
    if (announced) (void)runtime().synchronize_all();  // workers that were told to wait for it have to see it first
    (void)runtime().host_memory().release(place->address);
    return announced ? refused("the system does not let it be moved") : std::move(announced);
  }
  range.pinned = place->address;
  return {};
}

// The device's work is waited for without the lock: a call into the program may be part of it.
Done HostRegistrations::remove(uint64_t address) {
  const auto registered = find(address);
  if (!registered || registered->address != address) return refuse(cudaErrorHostMemoryNotRegistered);
  if (registered->pinned != 0) HEDDLE_ANSWER(runtime().synchronize_all());  // kernels may still write there
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end()) return refuse(cudaErrorHostMemoryNotRegistered);
  const Range range = found->second;
  ranges_.erase(found);
  if (range.pinned == 0) return {};
  const uint64_t from = range.address / kPage * kPage;
  const uint64_t bytes = round_up(range.address + range.bytes, kPage) - from;
  // Where the program has unmapped it meanwhile there is nothing to bring back.
  (void)move_pages_back(from, bytes);
  return runtime().host_memory().release(range.pinned);
}

Answer<uint64_t> HostRegistrations::device_address(uint32_t virtual_device, uint64_t address) {
  const std::lock_guard lock(mutex_);
  Range* const range = at(address);
  if (!range) return refuse(cudaErrorInvalidValue);
  if (range->pinned == 0) HEDDLE_ANSWER(move(virtual_device, *range));
  return range->device_address(address);
}

std::optional<HostRegistrations::Range> HostRegistrations::find(uint64_t address) {
  const std::lock_guard lock(mutex_);
  const Range* const range = at(address);
  return range ? std::optional(*range) : std::nullopt;
}

std::optional<HostRegistrations::Range> HostRegistrations::find_pinned(uint64_t address) {
  const std::lock_guard lock(mutex_);
  for (const auto& [start, range] : ranges_) {
    const uint64_t first = range.pinned ? range.device_address(range.address) : 0;
    if (first != 0 && address - first < range.bytes) return range;
  }
  return std::nullopt;
}

}  // namespace heddle::client
