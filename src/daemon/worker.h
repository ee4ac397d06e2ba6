#pragma once

#include <memory>
#include <string>

#include "core/ids.h"
#include "daemon/connection.h"
#include "daemon/event_loop.h"

namespace heddle::daemon {

// A worker process, as heddled knows it. Who may change what: workers.h, worker_executor.h.
struct Worker {
  enum class State { kStarting, kWarm, kBound, kKept, kLeaving };  // kept: for its virtual device's next task
  // What kind of client of its device, from its start on.
  enum class Kind : uint32_t {
    kWhole,       // on all of its SMs
    kBatch,       // on those that are batch's (batch_sms.h)
    kOutsideMps,  // not through MPS, which serves its GPU: for a program that is tried, or apart (mps_clients.h)
  };
  WorkerId id;
  uint64_t secret = 0;
  DeviceId device;
  State state = State::kStarting;
  Kind kind = Kind::kWhole;
  pid_t pid = 0;
  uint32_t uid = 0;  // of worker_uids (worker_users.h)
  Fd process;
  EventLoop::Watch process_watch;
  EventLoop::Timer patience;  // for its start, its return after a restart, its exit
  std::unique_ptr<Connection> connection;
  SessionId session;  // while bound or kept
  uint32_t virtual_device = 0;
  uint64_t serial = 0;
  bool has_served = false;  // the session's virtual device, in a task before: it has everything but that task's memory
  TimePoint kept_since{};
  std::string last_fault;             // what it reported of the session that it serves
  bool killed = false, died = false;  // by heddled; by itself, or it is dying
  bool held_back = false;             // by heddled, stopped for a moment (held_back.h)
  bool called_away = false;           // its task is to go on in a worker of another kind
  bool terminating = false;           // by heddled, so that its task leaves the device: it is stopped, or killed
  bool given_up = false;              // its task, as it was told to: it is ending
  Bytes driver_memory;                // that its context has grown by, on the accounts of the tasks that it served
  bool returning = false;             // came back to a restarted heddled, and was not told yet what it may be missing

  bool outside_mps() const { return kind == Kind::kOutsideMps; }
};

}  // namespace heddle::daemon
