#pragma once

namespace heddle::client {

class VirtualDevice;

// Where a thread's calls go.
struct ThreadPlace {
  int device = 0;                   // cudaSetDevice's choice
  VirtualDevice* inside = nullptr;  // in an operation of a task apart: the task's side device or device
};

inline ThreadPlace& thread_place() {
  thread_local constinit ThreadPlace place;
  return place;
}
inline int& current_device_index() {
  return thread_place().device;
}

}  // namespace heddle::client
