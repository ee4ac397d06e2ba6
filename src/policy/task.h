#pragma once

#include <cstdint>
#include <string>

#include "core/ids.h"
#include "core/units.h"

namespace heddle::policy {

// What a task's kernels ask of the SMs: the maximum over its launches so far.
struct ComputeNeed {
  uint64_t blocks = 0;
  uint32_t threads_per_block = 0;
  uint32_t registers_per_thread = 0;
  Bytes shared_per_block;
};

// What a decision is about.
enum class RequestKind {
  kTask,
  kExtension,  // more memory for a task
  kResume,     // a device for a task that was swapped out
};
constexpr bool wants_device(RequestKind kind) {
  return kind != RequestKind::kExtension;
}

struct TaskRequest {
  TaskId id;
  SessionId session;
  JobId job;                    // of the session; the scheduler goes by what session_opened said
  uint32_t virtual_device = 0;  // as the session numbers its devices
  std::string model;            // of that virtual device; empty: the session's
  Bytes memory;
  ComputeNeed compute;
  Bytes on_host = {};  // of the memory, of one that runs already and is put back (eager.h)
};

}  // namespace heddle::policy
