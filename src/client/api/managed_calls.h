#pragma once

#include "client/answer.h"

// What cudaMemAdvise and cudaMemPrefetchAsync do, in the form that names a location (managed_api.cc): the runtime's
// names mean different forms in CUDA 12 and 13.
namespace heddle::client {

// As the first forms have it: a device's number, or -1 for the host.
cudaMemLocation managed_location(int device);
Done advise_managed(const void* pointer, size_t bytes, int advice, const cudaMemLocation& location);
Done prefetch_managed(const void* pointer, size_t bytes, const cudaMemLocation& location, unsigned flags,
                      cudaStream_t stream);

}  // namespace heddle::client
