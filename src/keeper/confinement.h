#pragma once

#include "core/result.h"

namespace heddle::keeper {

// Before the driver is loaded, and so for all of its threads: no capabilities, also where heddled runs as root, no new
// privileges, no core dumps, and no other process of the user that takes its descriptors. A keeper opens the GPU's
// device nodes, which every user may, and has a socket already; it needs nothing more.
Status drop_privileges();

}  // namespace heddle::keeper
