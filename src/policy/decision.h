#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/units.h"
#include "policy/task.h"

namespace heddle::policy {

// What became of one request.
struct Decision {
  enum class Kind {
    kGrant,   // the task runs on `device` with `memory`
    kExtend,  // the running task has `memory` more
    kRefuse,  // `request` says of what; a task is then gone, an extension alone leaves its task as it was
    // The running task's memory, `memory` of it, is to leave its device, so that a deadlock of waits ends:
    // swapped_out() or stays() follows (swapping.h).
    kLeave,
  };
  Kind kind = Kind::kRefuse;
  RequestKind request = RequestKind::kTask;
  TaskId task;
  DeviceId device;                         // none for a refusal
  Bytes memory;                            // granted or refused
  ErrorCode error = ErrorCode::kInternal;  // of a refusal
  std::string reason;
  Duration waited{};
  SessionId session;
  uint32_t virtual_device = 0;
  Bytes on_host = {};  // of the memory of a grant (eager.h)
};

}  // namespace heddle::policy
