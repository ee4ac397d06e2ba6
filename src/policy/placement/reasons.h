#pragma once

#include <string>

#include "policy/placement/placement.h"

namespace heddle::policy {

// Why no candidate has the memory: "needs 6 GiB; most is free on device 1: 2.1 GiB".
std::string why_no_memory(const Request& request, std::span<const DeviceId> candidates, const Pool& pool);

// ", 3 GiB are used by processes outside of heddled", where that is so.
void append_withheld(std::string& why, DeviceId device, const Pool& pool);

}  // namespace heddle::policy
