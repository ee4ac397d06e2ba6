#pragma once

#include "client/answer.h"
#include "client/driver/driver_types.h"

// The driver's words for copies of rows and boxes, and the runtime's.
namespace heddle::client {

// cudaErrorInvalidValue for what makes no sense. An array's elements are counted, so that it has to be known.
Answer<cudaMemcpy3DParms> box_of(const CUDA_MEMCPY3D& p);
CUDA_MEMCPY3D box_of_rows(const CUDA_MEMCPY2D& p);
// The reverse, for the parameters of a graph's node.
Answer<CUDA_MEMCPY3D> box_of(const cudaMemcpy3DParms& p);

}  // namespace heddle::client
