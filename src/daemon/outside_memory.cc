#include "daemon/outside_memory.h"

#include <algorithm>
#include <utility>

namespace heddle::daemon {

void OutsideMemory::reported(DeviceId device, Bytes free) {
  // A worker may have come or gone between the keeper's look and ours: of two reports in a row the smaller counts.
  const Bytes used = used_outside(device, free);
  const Bytes sure = std::min(used, std::exchange(last_[device], used));
  const Bytes known = tasks_.scheduler().pool().load(device).outside;
  if (sure == known) return;
  if (known.value == 0) {
    shared_.log->info("processes outside of heddled use {} of device {}", to_string(sure), device.value);
  } else if (sure.value == 0) {
    shared_.log->info("device {} is heddled's own again", device.value);
  }
  tasks_.outside_memory(device, sure);
}

Bytes OutsideMemory::used_outside(DeviceId device, Bytes free) const {
  const Bytes capacity = tasks_.scheduler().pool().spec(device).memory;
  const Bytes there = free + own(device);
  return there < capacity ? capacity - there : Bytes{};
}

// Contexts of all workers count, warm ones too, and as measured, whatever they are charged.
Bytes OutsideMemory::own(DeviceId device) const {
  const DeviceState& gpu = shared_.registry.devices[device.value];
  Bytes sum = segments_.backed_on(gpu);
  for (const auto& [id, worker] : shared_.registry.workers) {
    if (worker.device == device) sum += gpu.config.context;
  }
  return sum;
}

}  // namespace heddle::daemon
