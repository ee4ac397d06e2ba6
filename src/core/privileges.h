#pragma once

#include "core/result.h"

namespace heddle {

// For a process that runs what tenants ask for, or holds what they must not take: no core dumps, no other process of
// the same user that debugs it or takes its descriptors, and no new privileges from programs that it executes.
Status renounce_new_privileges();

}  // namespace heddle
