#pragma once

#include <optional>
#include <string>

#include "policy/waiting.h"

namespace heddle::policy {

// What `heddle ps` and `heddle devices` show.

struct DeviceView {
  DeviceId id;
  Bytes capacity;
  Bytes promised;  // to tasks and to contexts
  Bytes contexts;  // of those, to contexts
  Bytes free;
  Bytes outside;  // kept from programs, because processes outside of heddled use it
  Bytes on_host;  // memory of tasks here that lies on the host (eager.h)
  uint64_t warps = 0;
  uint64_t max_warps = 0;
  uint32_t workers = 0;
  uint32_t tasks = 0;
  std::optional<SessionId> reserved_for;  // its request has waited past the age limit
};

struct RunningView {
  TaskId task;
  SessionId session;
  DeviceId device;
  Bytes memory;
  uint64_t warps = 0;
  Bytes on_host;  // besides (eager.h)
};

struct WaitView {
  RequestKind kind = RequestKind::kTask;
  TaskId task;
  SessionId session;
  uint32_t virtual_device = 0;
  Bytes memory;
  TimePoint since;
  WaitCause cause = WaitCause::kMemory;
  std::string why;      // it could not go at the last attempt
  size_t position = 0;  // among those that wait for the same model, from 1
};

struct BudgetView {
  Bytes budget;
  Bytes live;  // held and asked for, over all sessions of the job
};

}  // namespace heddle::policy
