#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/context.h"
#include "client/driver/driver_answer.h"

// Which contexts there are, and what was made in those that the program created (cuCtxCreate): that ends with them.
// What was made in a primary context, and all that the runtime makes, ends with the device's reset.
//
// Thread safety: any thread.
namespace heddle::client {

// What a context may own, by its handle or address.
enum class Owned { kMemory, kArray, kStream, kEvent, kPool };

// cudaErrorInvalidDevice for what is no device.
Done check_device(CUdevice device);
// cudaErrorDeviceUninitialized (CUDA_ERROR_INVALID_CONTEXT) for what is no context's handle, or was destroyed.
Answer<Context*> find_context(CUcontext handle);
Context* create_context(int device, unsigned flags);
// It has ended, and with it what it owns: whoever has it current is answered CUDA_ERROR_CONTEXT_IS_DESTROYED.
struct OwnedObject {
  Owned kind;
  uint64_t handle;
};
std::vector<OwnedObject> end_context(Context& context);
// Whether the program has made others for the device, which live.
bool has_created_contexts(int device);

// The current context owns it from now on; nobody does.
void own(Owned kind, uint64_t handle);
void disown(Owned kind, uint64_t handle);
// Whose it is: the device's primary context's where no other's.
Context* owner_of(Owned kind, uint64_t handle, int device);

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
