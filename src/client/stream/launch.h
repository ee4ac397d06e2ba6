#pragma once

#include "client/stream_ref.h"

namespace heddle::client {

struct LaunchShape {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
};

// Enqueues one kernel, whatever is being captured. Wrong shapes are refused here, with CUDA's codes; what goes wrong on
// the device shows later.
Done launch_on(const StreamRef& stream, Function& function, const LaunchShape& shape, void** arguments);
// Hints may be passed over; what changes the meaning of a launch may not.
Done apply_attribute(const cudaLaunchAttribute& attribute, LaunchShape& shape);
// Whether the device can run that shape.
Done check_launch(const Function& function, const LaunchShape& shape, const VirtualDevice& device);

// Where the arguments lie that the driver API's packed form, {1, buffer, 2, &size, 0}, names. cudaErrorInvalidValue
// where they are less than `bytes`.
Answer<char*> packed_parameters(void** extra, uint32_t bytes);

// The kernel that a host function or a handle means; its module is loaded. cudaErrorInvalidDeviceFunction if none.
Answer<Function*> prepared_function(const void* key);

}  // namespace heddle::client
