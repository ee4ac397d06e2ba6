#pragma once

#include "core/fd.h"

namespace heddle {

// The log, opened before, goes on at `fd`, at the level that it has. Returns the duplicate of `fd` that it writes to
// for the life of the process.
Result<int> move_log(const Fd& fd);

}  // namespace heddle
