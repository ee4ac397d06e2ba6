#include "client/copy/places.h"

#include <map>

#include "client/runtime.h"

namespace heddle::client {
namespace {

struct VariableRange {
  uint64_t bytes;
  uint32_t module, variable;
  VirtualDevice* device;
};

// Addresses that cudaGetSymbolAddress gave out, a handful. Never destroyed.
struct VariableAddresses {
  std::mutex mutex;
  std::map<uint64_t, VariableRange> ranges;
  std::atomic<bool> any{false};
};
VariableAddresses& variable_addresses() {
  static auto* const addresses = new VariableAddresses;
  return *addresses;
}

struct Found {
  uint64_t start;
  VariableRange range;
};
std::optional<Found> find_variable(uint64_t address) {
  VariableAddresses& known = variable_addresses();
  if (!known.any.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(known.mutex);
  auto after = known.ranges.upper_bound(address);
  if (after == known.ranges.begin()) return std::nullopt;
  const auto& [start, range] = *std::prev(after);
  return address - start < range.bytes ? std::optional(Found{start, range}) : std::nullopt;
}

std::optional<CopyPlace> variable_at(uint64_t address) {
  const auto found = find_variable(address);
  if (!found) return std::nullopt;
  CopyPlace place;
  place.kind = CopyPlace::kVariable;
  place.address = address - found->start;
  place.device = found->range.device;
  place.module = found->range.module;
  place.variable = found->range.variable;
  return place;
}

}  // namespace

void remember_variable_address(VirtualDevice* device, uint64_t address, uint64_t bytes, uint32_t module,
                               uint32_t variable) {
  VariableAddresses& known = variable_addresses();
  const std::lock_guard lock(known.mutex);
  known.ranges[address] = {bytes, module, variable, device};
  known.any.store(true, std::memory_order_release);
}

std::optional<VariableAddress> variable_range_at(uint64_t address) {
  const auto found = find_variable(address);
  if (!found) return std::nullopt;
  return VariableAddress{found->start, found->range.bytes, found->range.device};
}

Answer<CopyPlace> place_of(const void* pointer, uint64_t pitch, uint64_t slice) {
  CopyPlace place;
  place.address = reinterpret_cast<uint64_t>(pointer);
  if (runtime().in_window(place.address)) {
    place.device = runtime().device_of(place.address);
    place.kind = place.device ? CopyPlace::kDevice : CopyPlace::kPinned;
    if (!place.device && !runtime().host_memory().owns(place.address)) return refuse(cudaErrorInvalidValue);
    place.managed = place.device && runtime().managed_memory().find(place.address).has_value();
  } else if (auto variable = variable_at(place.address)) {
    place = *variable;
  }
  place.pitch = pitch;
  place.slice = slice;
  return place;
}

}  // namespace heddle::client
