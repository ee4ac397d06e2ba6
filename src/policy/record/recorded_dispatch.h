#pragma once

#include <memory>
#include <string>

#include "core/input_log.h"
#include "policy/dispatch/dispatch.h"

namespace heddle::policy {

// The dispatch policy of a device, `name` in the log, with what it is told and what it orders written to it. Returns
// `policy` itself where there is nothing to write: without a log, or where it is not exclusive. `log` outlives it.
std::unique_ptr<Dispatch> recorded(std::unique_ptr<Dispatch> policy, const std::string& name, DeviceId device,
                                   InputLog* log);

}  // namespace heddle::policy
