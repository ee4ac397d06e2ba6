#pragma once

#include <optional>

#include "client/context.h"
#include "client/driver/driver_answer.h"

// Which contexts there are, and which device a call means. Thread safety: any thread.
namespace heddle::client {

// cudaErrorInvalidDevice for what is no device.
Done check_device(CUdevice device);
// cudaErrorDeviceUninitialized (CUDA_ERROR_INVALID_CONTEXT) for what is no context's handle, or was destroyed.
Answer<Context*> find_context(CUcontext handle);
Context* create_context(int device, unsigned flags);
// It has ended: whoever has it current is answered CUDA_ERROR_CONTEXT_IS_DESTROYED.
void end_context(Context& context);
// Whether the program has made others for the device, which live.
bool has_created_contexts(int device);

// While it lives, the calling thread's calls mean the device, which exists, by its primary context.
class OnDevice {
 public:
  explicit OnDevice(int device) { push_context(&primary_context(device)); }
  ~OnDevice() { pop_context(); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

// As in_context(), for a call that names a stream: where the thread has no current context, a stream that is no default
// one says which device is meant.
class StreamsDevice {
 public:
  explicit StreamsDevice(cudaStream_t stream);

 private:
  std::optional<OnDevice> place_;
};
bool says_device(cudaStream_t stream);
template <class Body>
CUresult in_stream(cudaStream_t stream, Body&& body) noexcept {
  if (thread_place().context || !says_device(stream)) [[likely]]
    return in_context(std::forward<Body>(body));
  return in_driver([&] {
    const StreamsDevice place(stream);
    return body();
  });
}

}  // namespace heddle::client
