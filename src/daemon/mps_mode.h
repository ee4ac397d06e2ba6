#pragma once

#include "daemon/mps.h"
#include "daemon/shared.h"

namespace heddle::daemon {

// Starts the GPU's MPS, if it is to be shared through one. Where `auto` comes to nothing it is shared in time slices,
// and the log says why: MPS is not there, or nothing would be protected from other programs' faults under it.
Status start_mps(Shared& shared, Mps& mps, DeviceId device);

}  // namespace heddle::daemon
