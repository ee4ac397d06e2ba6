#pragma once

#include "core/device_model.h"
#include "core/occupancy.h"
#include "device/device.h"
#include "device/software/program.h"

namespace heddle::software {

// What one block of the launch takes of an SM. An error (kInvalidArgument; kLimitExceeded for shared memory and
// registers) if the device could not run it: the text names the limit and the value.
Result<SmShare> check_launch(const ProgramKernel& kernel, const device::LaunchConfig& config, const DeviceModel& model);

}  // namespace heddle::software
