#pragma once

#include <string>

#include "core/result.h"

namespace heddle::worker {

// Before anything else: no core dumps and no debugger of the same user, no new privileges, and where `user` is not
// empty that user's rights alone, in its groups alone.
Status drop_privileges(const std::string& user);

// Once the device is open: the kernel refuses, with EPERM, what a worker never needs again: other programs, other
// processes, the network, files opened for writing, tracing, mounting, modules. Where can_restrict_system_calls() is
// false it logs so, and is no error.
Status restrict_system_calls();
// False in a build without libseccomp or with a sanitizer, whose runtime needs more.
bool can_restrict_system_calls();

}  // namespace heddle::worker
