#include "policy/placement/seats.h"

namespace heddle::policy {

std::optional<DeviceId> Seats::of(const Request& request) const {
  const auto seat = seats_.find({request.job, request.virtual_device, request.model});
  if (seat == seats_.end()) return {};
  return seat->second;
}

uint32_t Seats::taken(DeviceId device) const {
  return device.value < taken_.size() ? taken_[device.value] : 0;
}

bool Seats::take(const Request& request, DeviceId device) {
  if (!seats_.try_emplace({request.job, request.virtual_device, request.model}, device).second) return false;
  if (device.value >= taken_.size()) taken_.resize(device.value + 1);
  ++taken_[device.value];
  return true;
}

void Seats::leave(JobId job) {
  auto seat = seats_.lower_bound({job});
  while (seat != seats_.end() && seat->first.job == job) {
    --taken_[seat->second.value];
    seat = seats_.erase(seat);
  }
}

}  // namespace heddle::policy
