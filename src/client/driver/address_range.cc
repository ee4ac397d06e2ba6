#include "client/driver/address_range.h"

#include "client/copy/places.h"
#include "client/graph/graph_memory.h"
#include "client/memory/host_registration.h"

namespace heddle::client {
namespace {

using Kind = AddressRange::Kind;

std::optional<AddressRange> in_device_memory(VirtualDevice& device, uint64_t address) {
  const int index = static_cast<int>(device.home().index());
  if (const auto managed = runtime().managed_memory().find(address))
    return AddressRange{Kind::kManaged, managed->address, managed->bytes, index, address, address};
  if (const auto buffer = device.memory().buffer_at(address))
    return AddressRange{Kind::kDevice, buffer->address, buffer->bytes, index, 0, address};
  return std::nullopt;
}

std::optional<AddressRange> in_host_memory(uint64_t address) {
  const int index = current_device_index();
  const auto registered = host_registrations().find(address);
  if (registered) {
    const bool pinned = registered->pinned != 0;
    return AddressRange{Kind::kHost,       registered->address,
                        registered->bytes, index,
                        address,           pinned ? registered->device_address(address) : 0};
  }
  if (const auto moved = host_registrations().find_pinned(address)) {
    const uint64_t start = moved->device_address(moved->address);
    return AddressRange{Kind::kHost, start, moved->bytes, index, moved->address + (address - start), address};
  }
  const auto buffer = runtime().in_window(address) ? runtime().host_memory().find(address) : std::nullopt;
  if (!buffer) return std::nullopt;
  const bool managed = buffer->flags & HostMemory::kManaged;
  return AddressRange{managed ? Kind::kManaged : Kind::kHost, buffer->address, buffer->bytes, index, address, address};
}

}  // namespace

std::optional<AddressRange> range_at(uint64_t address) {
  if (VirtualDevice* const device = runtime().device_of(address)) return in_device_memory(*device, address);
  if (auto range = in_host_memory(address)) return range;
  if (const auto variable = variable_range_at(address))
    return AddressRange{
        Kind::kVariable, variable->address, variable->bytes, static_cast<int>(variable->device->home().index()), 0,
        address};
  return std::nullopt;
}

}  // namespace heddle::client
