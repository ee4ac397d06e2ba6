#pragma once

#include <string>

#include "core/device_model.h"
#include "core/result.h"

namespace heddle::worker {

// Before anything else: no core dumps and no debugger of the same user, no new privileges, and where `user` is not
// empty that user's rights alone, in its groups alone.
Status drop_privileges(const std::string& user);

// Once the device is open: the kernel refuses, with EPERM, what a worker never needs again: other programs, other
// processes, the network, files opened for writing, tracing, mounting, modules. NVIDIA's driver opens its device nodes
// and caches for writing while it works, and speaks to MPS over sockets that it binds: for CUDA devices files and
// sockets are left to the worker user's rights. Where can_restrict_system_calls() is false it logs so, and is no error.
Status restrict_system_calls(DeviceKind device);
// False in a build without libseccomp or with a sanitizer, whose runtime needs more.
bool can_restrict_system_calls();

}  // namespace heddle::worker
