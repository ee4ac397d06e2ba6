#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/executor.h"
#include "daemon/leases.h"
#include "daemon/shared.h"
#include "daemon/waits.h"
#include "policy/scheduler.h"

namespace heddle::daemon {

// Sessions with their tasks, and devices, as JSON: what `heddle ps`, `heddle devices` and `heddle top` show. For one
// answer to the user `viewer`, to whom other users' jobs are not named (root sees all).
class Descriptions {
 public:
  Descriptions(const Shared& shared, const Executor& executor, const policy::Scheduler& scheduler, const Leases& leases,
               uid_t viewer);

  nlohmann::json session(Session& session) const;
  // Who has its lease: an array, empty where the device is not lent or nobody has it.
  nlohmann::json leases(DeviceId device) const;
  // How soon the device is to be had back, and how that went; null where nothing is revoked.
  nlohmann::json revocation(DeviceId device) const;

 private:
  nlohmann::json task(const Session& session, const VirtualDevice& device) const;

  const Shared& shared_;
  const Executor& executor_;
  const Leases& leases_;
  uid_t viewer_;
  Waits waits_;
};

}  // namespace heddle::daemon
