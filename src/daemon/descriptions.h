#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <utility>

#include "daemon/executor.h"
#include "daemon/leases.h"
#include "daemon/shared.h"
#include "policy/scheduler.h"

namespace heddle::daemon {

// Sessions and their tasks as JSON, as `heddle ps` shows them. For one answer: who waits for what is looked up once.
class Descriptions {
 public:
  Descriptions(const Shared& shared, const Executor& executor, const policy::Scheduler& scheduler,
               const Leases& leases);

  nlohmann::json session(Session& session) const;
  // "ok", or why nobody is served there.
  static std::string state_of(const DeviceState& device);

 private:
  nlohmann::json task(const Session& session, const VirtualDevice& device) const;

  const Shared& shared_;
  const Executor& executor_;
  const Leases& leases_;
  std::map<std::pair<SessionId, TaskId>, policy::WaitView> waits_;
};

}  // namespace heddle::daemon
