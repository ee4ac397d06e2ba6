#include "client/driver/contexts.h"

#include <mutex>
#include <set>

#include "client/runtime.h"

namespace heddle::client {
namespace {

// Contexts themselves are never freed: a thread may have one current that another destroys.
struct Created {
  std::mutex mutex;  // guards what follows
  std::set<Context*> live;
  std::vector<Context*> ended;
};
Created& created() {
  static auto* const all = new Created;
  return *all;
}

bool is_primary(const Context* handle) {
  for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
    if (handle == &primary_context(static_cast<int>(i))) return true;
  }
  return false;
}

}  // namespace

Done check_device(CUdevice device) {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  const auto count = static_cast<int>((*session)->welcome().device_count);
  return device >= 0 && device < count ? Done{} : refuse(cudaErrorInvalidDevice);
}

Answer<Context*> find_context(CUcontext handle) {
  if (handle && is_primary(handle)) return handle;
  const std::lock_guard lock(created().mutex);
  return created().live.contains(handle) ? Answer<Context*>(handle) : refuse(cudaErrorDeviceUninitialized);
}

Context* create_context(int device, unsigned flags) {
  auto* const context = new Context;
  context->device = device;
  context->id = next_context_id();
  context->flags = flags;
  const std::lock_guard lock(created().mutex);
  created().live.insert(context);
  return context;
}

void end_context(Context& context) {
  context.alive.store(false, std::memory_order_release);
  const std::lock_guard lock(created().mutex);
  if (created().live.erase(&context) != 0) created().ended.push_back(&context);
}

bool has_created_contexts(int device) {
  const std::lock_guard lock(created().mutex);
  for (const Context* context : created().live) {
    if (context->device == device) return true;
  }
  return false;
}

bool says_device(cudaStream_t stream) {
  return Handle::parse(kStreamTag, reinterpret_cast<uint64_t>(stream)).has_value();
}

// The call itself refuses a stream that does not exist.
StreamsDevice::StreamsDevice(cudaStream_t stream) {
  const auto handle = Handle::parse(kStreamTag, reinterpret_cast<uint64_t>(stream));
  if (handle && check_device(static_cast<CUdevice>(handle->device)))
    place_.emplace(static_cast<CUdevice>(handle->device));
}

}  // namespace heddle::client
