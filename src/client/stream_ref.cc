#include "client/stream_ref.h"

#include <pthread.h>

namespace heddle::client {
namespace {

thread_local bool t_per_thread_default = false;

// One thread's own default streams, a slot on each device that it used; given back when the thread ends.
struct ThreadStreams {
  std::array<std::optional<uint32_t>, protocol::kMaxDevices> slots;
};

void give_back(void* streams) {
  auto* const mine = static_cast<ThreadStreams*>(streams);
  for (uint32_t i = 0; i < mine->slots.size(); ++i) {
    VirtualDevice* device = runtime().opened(i);
    if (!mine->slots[i] || !device) continue;
    device->streams().close(*mine->slots[i]);
  }
  delete mine;
}

// A key rather than a thread_local object: its destructor does not run when the process exits.
ThreadStreams& my_streams() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    ::pthread_key_create(&made, give_back);
    return made;
  }();
  auto* mine = static_cast<ThreadStreams*>(::pthread_getspecific(key));
  if (!mine) {
    mine = new ThreadStreams;
    ::pthread_setspecific(key, mine);
  }
  return *mine;
}

Answer<StreamRef> my_stream(VirtualDevice* device) {
  auto& slot = my_streams().slots[device->index()];
  if (!slot) {
    auto opened = device->open_stream(false, 0);
    if (!opened) return tl::unexpected(std::move(opened).error());
    slot = *opened;
  }
  return StreamRef{device, *slot};
}

}  // namespace

PerThreadDefault::PerThreadDefault() : before_(t_per_thread_default) {
  t_per_thread_default = true;
}

PerThreadDefault::~PerThreadDefault() {
  t_per_thread_default = before_;
}

Answer<StreamRef> resolve_stream(cudaStream_t stream) {
  const auto value = reinterpret_cast<uintptr_t>(stream);
  const auto mine = reinterpret_cast<uintptr_t>(cudaStreamPerThread);
  if (value <= mine) {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    if (value == mine || (value == 0 && t_per_thread_default)) return my_stream(*device);
    return StreamRef{*device, 0};
  }
  const auto handle = Handle::parse(kStreamTag, value);
  if (!handle) return refuse(cudaErrorInvalidResourceHandle);
  auto device = runtime().device(static_cast<int>(handle->device));
  if (!device) return refuse(cudaErrorInvalidResourceHandle);
  const auto slot = (*device)->streams().find(*handle);
  return slot ? Answer<StreamRef>(StreamRef{*device, *slot}) : refuse(cudaErrorInvalidResourceHandle);
}

}  // namespace heddle::client
