#pragma once

#include "core/result.h"

namespace heddle::daemon {

// A daemon that `heddle run` starts inherits the limits (`ulimit`) of whoever came first, and serves everybody else
// with them. Raises each soft limit to its hard one. An error where a hard limit is left with which no program could
// be served: address space, data, file size or processor time that is bounded, fewer than kFewestDescriptors
// descriptors. It names the limit, its value, and what to do.
Status raise_process_limits();

// Enough for heddled itself and a few programs: each has a ring, a worker, and a descriptor for each segment.
inline constexpr unsigned kFewestDescriptors = 1024;

}  // namespace heddle::daemon
