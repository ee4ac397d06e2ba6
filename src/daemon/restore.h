#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/shared.h"

namespace heddle::daemon {

// What the vault gave back beside the registry's entries.
struct TakenOver {
  Fd control, worker;                      // listening sockets
  uint64_t starts = 0;                     // of heddled before this one
  std::string policy;                      // empty: never set
  std::vector<Worker> workers;             // not yet on the loop
  std::set<SessionId> broken;              // sessions that cannot go on
  std::map<DeviceId, SharedFault> faults;  // of devices whose workers were being ended, or tried
};

// Rebuilds the registry from deposits. Notes that make no sense, or belong to nobody, are withdrawn with a line in the
// log: what is lost then is one session's.
TakenOver restore(Shared& shared, std::vector<RestoredItem> items);

}  // namespace heddle::daemon
