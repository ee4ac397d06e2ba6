#pragma once

#include <string>

#include "policy/placement/placement.h"

namespace heddle::policy {

// Why no candidate has the memory: "needs 6 GiB; most is free on device 1: 2.1 GiB".
std::string why_no_memory(const Request& request, std::span<const DeviceId> candidates, const Pool& pool);

}  // namespace heddle::policy
