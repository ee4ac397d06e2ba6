#pragma once

#include <map>
#include <optional>
#include <vector>

#include "policy/pool.h"

namespace heddle::policy {

// Which device each virtual device of a job is assigned to, and how many are assigned to each device. A virtual device
// has one model; were one asked for under two, it would be two.
class Seats {
 public:
  std::optional<DeviceId> of(const Request& request) const;
  uint32_t taken(DeviceId device) const;
  // False where the virtual device was assigned already.
  bool take(const Request& request, DeviceId device);
  void leave(JobId job);

 private:
  struct Key {
    JobId job;
    uint32_t virtual_device = 0;
    size_t model = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, DeviceId> seats_;
  std::vector<uint32_t> taken_;  // by device
};

}  // namespace heddle::policy
