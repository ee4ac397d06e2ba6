#pragma once

#include <map>
#include <mutex>

#include "client/answer.h"
#include "client/copy/places.h"
#include "core/texture.h"

// CUDA arrays: buffers of device memory whose elements and dimensions are known here. Rows lie behind each other
// without gaps, so that copies to arrays are copies to buffers, and arrays survive workers as buffers do.
namespace heddle::client {

struct Array {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};  // as it was asked for
  unsigned flags = 0;
  VirtualDevice* device = nullptr;
  Texture layout;     // address, shape, size, element
  uint64_t room = 0;  // of the worker's copy that the device needs to read it; 0: it needs none
};

// The element that a channel format means, into `texture`. cudaErrorInvalidChannelDescriptor for what is none.
Done set_format(const cudaChannelFormatDesc& format, Texture& texture);
// Shape and size of an array of these flags; zeros in `extent` are dimensions that it lacks.
Done set_extent(const cudaExtent& extent, unsigned flags, Texture& texture);

// The arrays of the process, by handle. Thread-safe.
class Arrays {
 public:
  cudaArray_t add(const Array& array);
  // cudaErrorInvalidResourceHandle for what is none.
  Answer<Array> find(cudaArray_t handle);
  Answer<Array> take(cudaArray_t handle);
  // Forgets those of a device whose memory is gone.
  void forget(const VirtualDevice* device);

 private:
  std::mutex mutex_;
  std::map<uint64_t, Array> arrays_;
  uint64_t next_ = 1;
};
Arrays& arrays();

// A box of an array, its first byte at (x, y, z), x and width in bytes. cudaErrorInvalidValue beyond the array's end.
Answer<CopyPlace> place_in(const Array& array, const cudaPos& at, const CopyShape& shape);

}  // namespace heddle::client
