#pragma once

#include <memory>

#include "core/clock.h"
#include "daemon/config.h"
#include "daemon/shared.h"

namespace heddle::daemon::testing {

// What all of heddled's parts share, without processes: a registry without devices, a clock that stands still, no
// vault.
struct Books {
  explicit Books(const char* test) : log_(logger(test)) {}

  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
  std::shared_ptr<spdlog::logger> log_;
  Registry registry_;
  Trace trace_{100};
  VaultLink vault_{*loop_, [] { return fail(ErrorCode::kNotSupported, "there is no vault"); }, log_};
  IdSource ids_{vault_};
  EventQueue events_{[] {}};
  Shared shared_{*parse_config("[daemon]\nring_bulk = \"128K\"\nring_records = \"128K\"\n", "test"),
                 {},
                 clock_,
                 *loop_,
                 events_,
                 vault_,
                 ids_,
                 registry_,
                 trace_,
                 log_};
};

}  // namespace heddle::daemon::testing
