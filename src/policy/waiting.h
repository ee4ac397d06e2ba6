#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/task.h"

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
};

}  // namespace heddle::policy
