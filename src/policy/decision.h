#pragma once

#include <string>

#include "core/ids.h"
#include "core/result.h"
#include "core/units.h"

namespace heddle::policy {

// What became of one request.
struct Decision {
  enum class Kind {
    kGrant,   // the task runs on `device` with `memory`
    kExtend,  // the running task has `memory` more
    kBind,    // the session's virtual device is bound to `device`
    kRefuse,  // `error` says why by kind; a task that did not run is gone, one that ran goes on without the extension
  };
  Kind kind = Kind::kRefuse;
  TaskId task;                             // none for a binding
  DeviceId device;                         // none for a refusal
  Bytes memory;                            // granted or refused
  ErrorCode error = ErrorCode::kInternal;  // of a refusal
  std::string reason;
  Duration waited{};
  SessionId session;
  uint32_t virtual_device = 0;
};

}  // namespace heddle::policy
