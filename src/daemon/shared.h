#pragma once

#include <memory>
#include <string>

#include "core/clock.h"
#include "core/log.h"
#include "daemon/config.h"
#include "daemon/event_loop.h"
#include "daemon/events.h"
#include "daemon/ids.h"
#include "daemon/registry.h"
#include "daemon/runtime_directory.h"
#include "daemon/trace.h"
#include "daemon/vault_link.h"

namespace heddle::daemon {

// What every part of heddled works with. Owned by the Daemon.
struct Shared {
  Config config;
  Places places;
  const Clock& clock;
  EventLoop& loop;
  EventQueue& events;
  VaultLink& vault;
  IdSource& ids;
  Registry& registry;
  Trace& trace;
  std::shared_ptr<spdlog::logger> log;

  TimePoint now() const { return clock.now(); }
};

}  // namespace heddle::daemon
