#pragma once

#include <vector>

#include "daemon/registry.h"

namespace heddle::daemon {

// The windows to offer to programs and workers, in order: the configuration's, but first the one that a GPU's workers
// have got. NVIDIA's driver keeps some addresses for itself, and which is known only when a worker has tried.
std::vector<protocol::Window> offered_windows(const Config& config, const Registry& registry);

}  // namespace heddle::daemon
