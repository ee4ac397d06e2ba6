#pragma once

#include "client/stream_ref.h"

namespace heddle::client {

struct LaunchShape {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool cooperative = false;
};

// Enqueues one kernel. Wrong shapes are refused here, with CUDA's codes; what goes wrong on the device shows later.
Done launch(Function& function, const LaunchShape& shape, void** arguments, cudaStream_t stream);

// The kernel that a host function or a handle means; its module is loaded. cudaErrorInvalidDeviceFunction if none.
Answer<Function*> prepared_function(const void* key);

}  // namespace heddle::client
