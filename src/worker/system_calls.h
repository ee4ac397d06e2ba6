#pragma once

#include "core/device_model.h"
#include "core/result.h"

namespace heddle::worker {

// Once the device is open: the kernel refuses, with EPERM, what a worker never needs again.
//
// Software devices: only what is listed may be called; no other process, no network, no file but for reading.
// CUDA devices: what is listed may not be called. NVIDIA's driver calls what it likes, opens its device nodes and
// caches for writing while it works, and speaks to MPS over sockets that it binds; files and sockets are left to the
// rights of the worker's user.
//
// Where can_restrict_system_calls() is false it logs so, and is no error.
Status restrict_system_calls(DeviceKind device);
// False in a build without libseccomp or with a sanitizer, whose runtime needs more.
bool can_restrict_system_calls();

}  // namespace heddle::worker
