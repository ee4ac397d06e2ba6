#pragma once

#include "target.h"

namespace heddle::conformance {

// A software device of that model.
std::unique_ptr<Target> software_target(const DeviceModel& model);

// Software devices: one that runs as fast as the host can, and two that keep a pace, shared block by block and in
// turns.
std::unique_ptr<Target> unpaced_software_target();
std::unique_ptr<Target> paced_software_target();
std::unique_ptr<Target> time_sliced_software_target();

}  // namespace heddle::conformance
