#include "policy/placement/seats.h"

namespace heddle::policy {

std::optional<DeviceId> Seats::of(JobId job, uint32_t virtual_device) const {
  const auto seat = seats_.find({job, virtual_device});
  if (seat == seats_.end()) return {};
  return seat->second;
}

uint32_t Seats::taken(DeviceId device) const {
  return device.value < taken_.size() ? taken_[device.value] : 0;
}

bool Seats::take(JobId job, uint32_t virtual_device, DeviceId device) {
  if (!seats_.try_emplace({job, virtual_device}, device).second) return false;
  if (device.value >= taken_.size()) taken_.resize(device.value + 1);
  ++taken_[device.value];
  return true;
}

void Seats::leave(JobId job) {
  auto seat = seats_.lower_bound({job, 0});
  while (seat != seats_.end() && seat->first.first == job) {
    --taken_[seat->second.value];
    seat = seats_.erase(seat);
  }
}

}  // namespace heddle::policy
