#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/task.h"
#include "policy/user_memory.h"

namespace heddle::policy {

// Its place in the queue: by age, then extensions first, then by arrival.
struct WaitKey {
  TimePoint since;
  bool not_extension = false;
  uint64_t arrival = 0;  // unique
  size_t model = 0;      // names the line; never decides the order
  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
};

struct Wait {
  RequestKind kind = RequestKind::kTask;
  SessionId session;
  TaskId task;
  uint32_t virtual_device = 0;
  Bytes memory;
  std::string why;  // as of the last attempt
};

struct Reservation {
  WaitKey holder;
  DeviceId device;
};

// The requests that wait for devices of one model. Models never compete, so each has a line of its own.
struct Line {
  std::map<WaitKey, Wait> waits;
  std::vector<WaitKey> fresh;  // came since the last pass; the others need no attempt until something returns
  bool retry = false;          // something returned
  std::optional<Reservation> reserved;

  // The request that waits for the longest time for a device. A request that waits for programs of its own user would
  // keep a device from others for nothing: it is passed over.
  std::map<WaitKey, Wait>::const_iterator oldest(const UserMemory& users) const {
    return std::find_if(waits.begin(), waits.end(),
                        [&](const auto& each) { return !users.over(each.second.session, each.second.memory); });
  }
  // Whether any request waits for a device, and not for programs of its own user.
  bool anybody_waits(const UserMemory& users) const { return oldest(users) != waits.end(); }
};

}  // namespace heddle::policy
