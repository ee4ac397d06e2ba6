#pragma once

#include "daemon/shared.h"

namespace heddle::daemon {

// Adds what happened to a task to the trace of the latest events.
inline void trace_task(const Shared& shared, const char* kind, const Session& session, const Task& task, Bytes memory,
                       const std::string& reason, const protocol::Usage& usage = {}) {
  TraceEvent event;
  event.time = shared.now();
  event.kind = kind;
  event.job = session.job;
  event.session = session.id;
  event.task = task.id;
  event.device = has_device(task.state) ? static_cast<int64_t>(task.device.value) : -1;
  event.memory = memory;
  event.need = task.need;
  event.reason = reason;
  event.uid = session.uid;
  event.usage = usage;
  shared.trace.add(std::move(event));
}

}  // namespace heddle::daemon
