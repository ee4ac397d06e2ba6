#pragma once

#include "client/answer.h"
#include "client/driver/driver_types.h"

// The driver's words for the elements of arrays and textures, and the runtime's.
namespace heddle::client {

// cudaErrorInvalidValue for formats that the runtime has no word for (block compression, video).
Answer<cudaChannelFormatDesc> channel_format(CUarray_format format, unsigned channels);

struct ArrayFormat {
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 0;
};
ArrayFormat array_format(const cudaChannelFormatDesc& description);

}  // namespace heddle::client
