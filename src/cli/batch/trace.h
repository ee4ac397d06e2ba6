#pragma once

#include <string>
#include <vector>

#include "cli/batch/batch_result.h"
#include "cli/daemon_link.h"

namespace heddle::cli {

// One event of heddled's trace, as the command "trace" answers it.
struct TraceEvent {
  TimePoint time{};
  std::string kind;  // "task_arrived", "task_granted", "task_ended", "usage", ...
  uint64_t job = 0, session = 0, task = 0, device = 0, memory = 0;
  uint64_t blocks = 0, threads = 0, registers = 0, shared = 0;  // of its largest launch
  uint64_t launches = 0, kernel_ns = 0, busy_ns = 0, overrun_ns = 0;
  std::string reason;
};

// The number of the next event, to begin a trace with.
Result<uint64_t> trace_cursor(DaemonLink& link);
// All events from `cursor` on. An error if heddled has forgotten the first of them.
Result<std::vector<TraceEvent>> read_trace(DaemonLink& link, uint64_t cursor);

// Fills in what heddled saw of each job: first request and first grant (relative to `begin`), launches, kernel time,
// overrun.
void add_trace(BatchResult& result, const std::vector<TraceEvent>& events, TimePoint begin);

// Writes the tasks as a trace that Perfetto opens: a track for each device, a slice for each task on it.
Status write_perfetto(const std::string& path, const BatchResult& result, const std::vector<TraceEvent>& events,
                      const std::vector<std::string>& device_names, TimePoint begin);

}  // namespace heddle::cli
