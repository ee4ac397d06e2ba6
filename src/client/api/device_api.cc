// Devices: which there are, which one is current, what was set for it.

#include <cstdio>

#include "client/api/properties.h"
#include "client/context.h"
#include "client/copy/arrays.h"
#include "client/device/driver_needs.h"
#include "client/graph/capture.h"
#include "client/graph/graph_memory.h"
#include "client/memory/memory_pool.h"
#include "client/stream_ref.h"

namespace heddle::client {
namespace {

std::atomic<unsigned> device_flags{0};

WaitMode wait_mode_of(unsigned flags) {
  if (flags & cudaDeviceScheduleBlockingSync) return WaitMode::kBlock;
  if (flags & cudaDeviceScheduleYield) return WaitMode::kYield;
  return flags & cudaDeviceScheduleSpin ? WaitMode::kSpin : WaitMode::kAuto;
}

Answer<uint32_t> device_count() {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  return (*session)->welcome().device_count;
}

Done check_device(int device) {
  const auto count = device_count();
  if (!count) return tl::unexpected(count.error());
  return device >= 0 && static_cast<uint32_t>(device) < *count ? Done{} : refuse(cudaErrorInvalidDevice);
}

Answer<DeviceModel> model_of(int device) {
  HEDDLE_ANSWER(check_device(device));
  return (*runtime().session())->welcome().devices[device];
}

Done bus_id(char* text, int length, int device) {
  auto model = model_of(device);
  if (!model) return tl::unexpected(std::move(model).error());
  if (!text || length <= 0) return refuse(cudaErrorInvalidValue);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", model->pci_bus);
  return {};
}

Done by_bus_id(int* device, const char* text) {
  if (!device || !text) return refuse(cudaErrorInvalidValue);
  const auto count = device_count();
  if (!count) return tl::unexpected(count.error());
  unsigned domain = 0, bus = 0, slot = 0;
  const bool parsed = std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3 ||
                      (domain = 0, std::sscanf(text, "%x:%x", &bus, &slot) == 2);
  for (uint32_t i = 0; parsed && domain == 0 && i < *count; ++i) {
    if ((*runtime().session())->welcome().devices[i].pci_bus != bus) continue;
    *device = static_cast<int>(i);
    return {};
  }
  return refuse(cudaErrorInvalidValue);
}

Done release_managed(const VirtualDevice& device) {
  const protocol::Window& window = device.session().window();
  HEDDLE_ANSWER(runtime().managed_memory().release_all());
  runtime().managed_hints.forget(window.base, window.device_bytes);
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaGetDeviceCount(int* count) {
  return answer([&]() -> Done {
    if (!count) return refuse(cudaErrorInvalidValue);
    *count = 0;
    const auto devices = device_count();
    if (!devices) return tl::unexpected(devices.error());
    *count = static_cast<int>(*devices);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGetDevice(int* device) {
  return answer([&]() -> Done {
    if (!device) return refuse(cudaErrorInvalidValue);
    *device = current_device_index();
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaSetDevice(int device) {
  return answer([&]() -> Done {
    HEDDLE_ANSWER(check_device(device));
    use_primary_context(device);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return answer([&]() -> Done {
    auto opened = runtime().device(device);
    return opened ? Done{} : Done(tl::unexpected(std::move(opened).error()));
  });
}

HEDDLE_EXPORT cudaError_t cudaSetValidDevices(int* devices, int count) {
  return answer([&]() -> Done {
    for (int i = 0; i < count; ++i) HEDDLE_ANSWER(check_device(devices[i]));
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return answer([&]() -> Done {
    if (flags & ~cudaDeviceMask) return refuse(cudaErrorInvalidValue);
    device_flags = flags;
    wait_mode() = wait_mode_of(flags);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer([&]() -> Done {
    if (!flags) return refuse(cudaErrorInvalidValue);
    *flags = device_flags;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceSynchronize() {
  return answer([]() -> Done {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    HEDDLE_ANSWER(captures().refuse_on(**device));
    HEDDLE_ANSWER((*device)->synchronize_with_side_devices());
    memory_pools().synchronized(**device);
    return {};
  });
}

// What the program left behind goes with the session; here its work is waited for and its memory given back.
HEDDLE_EXPORT cudaError_t cudaDeviceReset() {
  return answer([]() -> Done {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    HEDDLE_ANSWER((*device)->synchronize_with_side_devices());
    HEDDLE_ANSWER((*device)->textures().close_all());
    arrays().forget(*device);
    HEDDLE_ANSWER(release_managed(**device));
    HEDDLE_ANSWER((*device)->reset());
    Done done;
    (*device)->side_devices().for_each([&](VirtualDevice& side) {
      if (done) done = side.reset();
    });
    HEDDLE_ANSWER(done);
    memory_pools().forget(**device);
    graph_memory().forget(**device);
    disown_memory(static_cast<int>((*device)->index()));
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return answer([&]() -> Done {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    const auto set = [&](VirtualDevice& one) -> Done {
      if (limit == cudaLimitStackSize) HEDDLE_ANSWER(charge_stack(one, value));
      return one.limits().set(limit, value);
    };
    HEDDLE_ANSWER(set(**device));
    Done done;
    (*device)->side_devices().for_each([&](VirtualDevice& side) {
      if (done) done = set(side);
    });
    return done;
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return answer([&]() -> Done {
    if (!value) return refuse(cudaErrorInvalidValue);
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto found = (*device)->limits().get(limit);
    if (!found) return tl::unexpected(std::move(found).error());
    *value = *found;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (!config) return remember(cudaErrorInvalidValue);
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  const bool known = config >= cudaFuncCachePreferNone && config <= cudaFuncCachePreferEqual;
  return known ? cudaSuccess : remember(cudaErrorInvalidValue);
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(int* config) {
  if (!config) return remember(cudaErrorInvalidValue);
  *config = 1;  // banks of four bytes
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(int) {
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return answer([&] { return bus_id(text, length, device); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return answer([&] { return by_bus_id(device, text); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return answer([&]() -> Done {
    if (!can) return refuse(cudaErrorInvalidValue);
    *can = 0;  // virtual devices are separate workers, which may be on any devices
    HEDDLE_ANSWER(check_device(device));
    return check_device(peer);
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return answer([&]() -> Done {
    HEDDLE_ANSWER(check_device(peer));
    return refuse(cudaErrorPeerAccessUnsupported);
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return answer([&]() -> Done {
    HEDDLE_ANSWER(check_device(peer));
    return refuse(cudaErrorPeerAccessNotEnabled);
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetP2PAttribute(int* value, int, int device, int peer) {
  return answer([&]() -> Done {
    if (!value) return refuse(cudaErrorInvalidValue);
    *value = 0;
    HEDDLE_ANSWER(check_device(device));
    return check_device(peer);
  });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return answer([&]() -> Done {
    auto model = model_of(device);
    if (!model) return tl::unexpected(std::move(model).error());
    if (!value) return refuse(cudaErrorInvalidValue);
    const auto found = device_attribute(attribute, *model, (*runtime().session())->managed_on_device());
    if (!found) return refuse(cudaErrorInvalidValue);
    *value = *found;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaCtxResetPersistingL2Cache() {
  return cudaSuccess;
}

}  // namespace heddle::client
