#include "client/runtime.h"

#include <pthread.h>

#include <cstdlib>

#include "client/context.h"

namespace heddle::client {

Runtime& runtime() {
  static auto* const the_runtime = new Runtime;
  return *the_runtime;
}

namespace {

// So many that each device's and side device's part of the window is still a quarter more than it may hold: a freed
// range's addresses are used again only when there are no others.
uint32_t side_devices_in(const protocol::Window& window, const protocol::Welcome& welcome) {
  const char* wanted = std::getenv("HEDDLE_LANES");
  uint32_t side_devices = std::min(welcome.side_device_count, protocol::kMaxDevices - welcome.device_count);
  if (wanted && *wanted)
    side_devices = std::min(side_devices, static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10)));
  while (side_devices > 0 &&
         window.device_bytes / (welcome.device_count + side_devices) < welcome.budget_bytes / 4 * 5 + kSegmentBytes)
    --side_devices;
  return side_devices;
}

}  // namespace

Answer<Session*> Runtime::session() {
  if (in_fork_child_.load(std::memory_order_relaxed)) [[unlikely]]
    return refuse(cudaErrorInitializationError, "this process was forked from one that had used CUDA already");
  if (Session* session = session_.load(std::memory_order_acquire)) [[likely]]
    return session;
  const std::lock_guard lock(mutex_);
  if (!tried_) open_result_ = connect();
  tried_ = true;
  if (!open_result_) return tl::unexpected(open_result_.error());
  return session_.load(std::memory_order_relaxed);
}

// Devices and side devices share the window's device part equally, in whole segments.
Done Runtime::connect() {
  auto settings = SessionSettings::from_environment();
  if (!settings) return refuse(cudaErrorInitializationError, settings.error().text);
  auto session = Session::open(std::move(*settings));
  if (!session) {
    const bool unsupported = session.error().code == ErrorCode::kNotSupported;
    return refuse(unsupported ? cudaErrorNotSupported : cudaErrorInitializationError, session.error().text);
  }
  const protocol::Window& window = (*session)->window();
  const protocol::Welcome& welcome = (*session)->welcome();
  if (const std::string refusal = (*session)->managed_refusal(); !refusal.empty()) say_once(refusal);
  side_devices_ = side_devices_in(window, welcome);
  bytes_per_device_ = window.device_bytes / (welcome.device_count + side_devices_) / kSegmentBytes * kSegmentBytes;
  host_memory_ = std::make_unique<HostMemory>(**session);
  managed_memory_ = std::make_unique<ManagedMemory>(*host_memory_);
  ::pthread_atfork(nullptr, nullptr, [] { runtime().forked(); });
  // What kernels printed by then, and nothing that would wait.
  std::atexit([] { runtime().drain_prints(); });
  session_.store(session->release(), std::memory_order_release);
  return {};
}

Answer<VirtualDevice*> Runtime::device(int index) {
  auto session = this->session();
  if (!session) [[unlikely]]
    return tl::unexpected(std::move(session).error());
  if (index < 0 || static_cast<uint32_t>(index) >= (*session)->welcome().device_count)
    return refuse(cudaErrorInvalidDevice);
  if (VirtualDevice* device = opened(static_cast<uint32_t>(index))) [[likely]]
    return device;
  return open(static_cast<uint32_t>(index));
}

Answer<VirtualDevice*> Runtime::current_device() {
  ThreadPlace& place = thread_place();
  if (place.inside) [[unlikely]]
    return place.inside;
  if (!place.context) [[unlikely]]
    use_primary_context(place.device);
  return device(place.device);
}

VirtualDevice* Runtime::open_side_device(VirtualDevice& home) {
  if (side_devices_open_ == side_devices_) return nullptr;
  auto side = open(home.session().welcome().device_count + side_devices_open_, &home);
  if (!side) return nullptr;
  ++side_devices_open_;
  home.side_devices().add(*side);
  return *side;
}

Answer<VirtualDevice*> Runtime::open(uint32_t index, VirtualDevice* home) {
  const std::lock_guard lock(mutex_);
  if (VirtualDevice* device = opened(index)) return device;
  Session& session = *session_.load(std::memory_order_relaxed);
  auto memory = session.open_device(index);
  if (!memory) return tl::unexpected(std::move(memory).error());
  auto device = std::make_unique<VirtualDevice>(
      session, index, std::move(*memory), session.window().base + index * bytes_per_device_, bytes_per_device_, home);
  devices_[index].store(device.get(), std::memory_order_release);
  return device.release();
}

bool Runtime::in_window(uint64_t address) const {
  const Session* session = session_.load(std::memory_order_acquire);
  return session && session->window().holds(address);
}

VirtualDevice* Runtime::device_of(uint64_t address) const {
  const Session* session = session_.load(std::memory_order_acquire);
  if (!session || address - session->window().base >= session->window().device_bytes) return nullptr;
  const uint64_t index = (address - session->window().base) / bytes_per_device_;
  return index < session->welcome().device_count + side_devices_ ? opened(static_cast<uint32_t>(index)) : nullptr;
}

Done Runtime::announce_host_segment(uint64_t number) {
  for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
    if (VirtualDevice* device = opened(i)) HEDDLE_ANSWER(device->task().need_segment(number));
  }
  return {};
}

Done Runtime::synchronize_all() {
  for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
    if (VirtualDevice* device = opened(i)) HEDDLE_ANSWER(device->synchronize());
  }
  return {};
}

void Runtime::drain_prints() {
  if (in_fork_child_) return;
  for (uint32_t i = 0; i < protocol::kMaxDevices; ++i) {
    if (VirtualDevice* device = opened(i)) device->ring().drain_prints();
  }
}

}  // namespace heddle::client
