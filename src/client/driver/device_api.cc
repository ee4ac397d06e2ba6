// Devices: which there are, and what they are like.

#include <cstring>

#include "client/api/properties.h"
#include "client/copy/arrays.h"
#include "client/driver/array_format.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

Answer<DeviceModel> model_of(CUdevice device) {
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  const protocol::Welcome& welcome = (*session)->welcome();
  if (device < 0 || static_cast<uint32_t>(device) >= welcome.device_count) return refuse(cudaErrorInvalidDevice);
  return welcome.devices[device];
}

// Runs `body` on the device's model; `to` is where it writes.
template <class To, class Body>
CUresult describe(CUdevice device, To* to, Body&& body) {
  return in_driver([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto model = model_of(device);
    if (!model) return tl::unexpected(std::move(model).error());
    body(*model);
    return {};
  });
}

CUresult get(CUdevice* device, int ordinal) {
  return describe(ordinal, device, [&](const DeviceModel&) { *device = ordinal; });
}

CUresult name(char* text, int length, CUdevice device) {
  if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
  return describe(device, text, [&](const DeviceModel& model) {
    std::snprintf(text, static_cast<size_t>(length), "%s", model.name);
  });
}

CUresult uuid(CUuuid* to, CUdevice device) {
  return describe(device, to, [&](const DeviceModel& model) {
    const auto words = device_uuid(model, device);
    static_assert(sizeof words == sizeof *to);
    std::memcpy(to, words.data(), sizeof words);
  });
}

// Windows' name for a device: zeros, as in cudaDeviceProp.
CUresult luid(char* to, unsigned* nodes, CUdevice device) {
  return describe(device, to, [&](const DeviceModel&) {
    std::memset(to, 0, 8);
    if (nodes) *nodes = 0;
  });
}

CUresult total_memory(size_t* bytes, CUdevice device) {
  return describe(device, bytes, [&](const DeviceModel& model) { *bytes = model.memory_bytes; });
}

CUresult capability(int* major, int* minor, CUdevice device) {
  if (!minor) return CUDA_ERROR_INVALID_VALUE;
  return describe(device, major, [&](const DeviceModel& model) {
    *major = static_cast<int>(model.capability_major);
    *minor = static_cast<int>(model.capability_minor);
  });
}

constexpr int kTexture2DGather = 44;

// Attributes that only the driver has numbers for. But for the first they ask for what heddle does not serve: virtual
// memory management, memory operations of streams, multicast, fabric handles.
bool only_of_driver(int attribute) {
  for (const int known : {kTexture2DGather,
                          92,
                          93,
                          94,
                          96,
                          102,
                          103,
                          104,
                          105,
                          107,
                          110,
                          122,
                          123,
                          124,
                          127,
                          128,
                          129,
                          132,
                          136,
                          137,
                          141,
                          145,
                          146}) {
    if (attribute == known) return true;
  }
  return false;
}

CUresult attribute(int* value, int attribute, CUdevice device) {
  if (only_of_driver(attribute))
    return describe(device, value, [&](const DeviceModel&) { *value = attribute == kTexture2DGather ? 1 : 0; });
  return SameAnywhere<&cudaDeviceGetAttribute>::call(value, attribute, device);
}

CUresult properties(CUdevprop* to, CUdevice device) {
  return describe(device, to, [&](const DeviceModel& model) {
    const auto get = [&](int attribute) { return device_attribute(attribute, model, false).value_or(0); };
    *to = {
        get(1), {get(2), get(3), get(4)}, {get(5), get(6), get(7)}, get(8), get(9), get(10), get(11), get(12), get(13),
        get(14)};
  });
}

CUresult no_affinity(int* supported, int, CUdevice device) {
  return describe(device, supported, [&](const DeviceModel&) { *supported = 0; });
}

CUresult linear_texture_width(size_t* width, CUarray_format format, unsigned channels, CUdevice device) {
  return in_driver([&]() -> Done {
    const auto described = channel_format(format, channels);
    if (!described) return tl::unexpected(described.error());
    const LastErrorKept kept;
    const cudaError_t code = cudaDeviceGetTexture1DLinearMaxWidth(width, &*described, device);
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

}  // namespace

std::span<const DriverFunction> driver_device_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuDeviceGet, 2000, get),
      HEDDLE_DRIVER(cuDeviceGetCount, 2000, SameAnywhere<&cudaGetDeviceCount>::call),
      HEDDLE_DRIVER(cuDeviceGetName, 2000, name),
      HEDDLE_DRIVER(cuDeviceGetUuid, 9020, uuid),
      HEDDLE_DRIVER(cuDeviceGetUuid_v2, 11040, uuid),
      HEDDLE_DRIVER(cuDeviceGetLuid, 10000, luid),
      HEDDLE_DRIVER(cuDeviceTotalMem_v2, 3020, total_memory),
      HEDDLE_DRIVER(cuDeviceComputeCapability, 2000, capability),
      HEDDLE_DRIVER(cuDeviceGetAttribute, 2000, attribute),
      HEDDLE_DRIVER(cuDeviceGetProperties, 2000, properties),
      HEDDLE_DRIVER(cuDeviceGetPCIBusId, 4010, SameAnywhere<&cudaDeviceGetPCIBusId>::call),
      HEDDLE_DRIVER(cuDeviceGetByPCIBusId, 4010, SameAnywhere<&cudaDeviceGetByPCIBusId>::call),
      HEDDLE_DRIVER(cuDeviceCanAccessPeer, 4000, SameAnywhere<&cudaDeviceCanAccessPeer>::call),
      HEDDLE_DRIVER(cuDeviceGetP2PAttribute, 8000, SameAnywhere<&cudaDeviceGetP2PAttribute>::call),
      HEDDLE_DRIVER(cuDeviceGetExecAffinitySupport, 11040, no_affinity),
      HEDDLE_DRIVER(cuDeviceGetTexture1DLinearMaxWidth, 11010, linear_texture_width),
      HEDDLE_DRIVER(cuDeviceGetDefaultMemPool, 11020, SameAnywhere<&cudaDeviceGetDefaultMemPool>::call),
      HEDDLE_DRIVER(cuDeviceGetMemPool, 11020, SameAnywhere<&cudaDeviceGetMemPool>::call),
      HEDDLE_DRIVER(cuDeviceSetMemPool, 11020, SameAnywhere<&cudaDeviceSetMemPool>::call),
      HEDDLE_DRIVER(cuDeviceGraphMemTrim, 11040, SameAnywhere<&cudaDeviceGraphMemTrim>::call),
      HEDDLE_DRIVER(cuDeviceGetGraphMemAttribute, 11040, SameAnywhere<&cudaDeviceGetGraphMemAttribute>::call),
      HEDDLE_DRIVER(cuDeviceSetGraphMemAttribute, 11040, SameAnywhere<&cudaDeviceSetGraphMemAttribute>::call),
  };
  return rows;
}

}  // namespace heddle::client
