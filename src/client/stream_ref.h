#pragma once

#include "client/runtime.h"

namespace heddle::client {

// A stream as records know it.
struct StreamRef {
  VirtualDevice* device = nullptr;
  uint32_t slot = 0;
};

// Which stream a handle means: null is the calling thread's default stream (legacy, or its own in calls of the
// _ptsz and _ptds kind), on the current device. cudaErrorInvalidResourceHandle for what is none.
Answer<StreamRef> resolve_stream(cudaStream_t stream);

// While it lives, null streams of this thread mean its own default stream: how the _ptsz and _ptds twins work.
class PerThreadDefault {
 public:
  PerThreadDefault();
  ~PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  bool before_;
};

}  // namespace heddle::client
