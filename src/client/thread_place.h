#pragma once

namespace heddle::client {

class VirtualDevice;
struct Context;

// Where a thread's calls go.
struct ThreadPlace {
  int device = 0;                   // cudaSetDevice's choice; the current context's where there is one
  Context* context = nullptr;       // current; null until the thread uses the runtime or makes one current (context.h)
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
