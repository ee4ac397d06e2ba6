#pragma once

#include <string>

#include "core/result.h"

namespace heddle::worker {

// Before anything else: no core dumps and no debugger of the same user, no new privileges, and where `user` is not
// empty that user's rights alone, in no other's groups: a name, or the number of a uid that need not be anybody's. When
// the machine's memory runs out the kernel ends a worker before heddled and before other programs, because a worker is
// what swells with a tenant's work.
Status drop_privileges(const std::string& user);

}  // namespace heddle::worker
