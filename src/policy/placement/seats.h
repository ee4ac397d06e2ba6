#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/ids.h"

namespace heddle::policy {

// Which device each virtual device of a job is bound to, and how many are bound to each device.
class Seats {
 public:
  std::optional<DeviceId> of(JobId job, uint32_t virtual_device) const;
  uint32_t taken(DeviceId device) const;
  // False where the virtual device was bound already.
  bool take(JobId job, uint32_t virtual_device, DeviceId device);
  void leave(JobId job);

 private:
  std::map<std::pair<JobId, uint32_t>, DeviceId> seats_;
  std::vector<uint32_t> taken_;  // by device
};

}  // namespace heddle::policy
