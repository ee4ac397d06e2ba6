// cudaGetDeviceProperties, from the same answers as cudaDeviceGetAttribute gives.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "client/api/device_properties.h"
#include "client/api/properties.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

#if HEDDLE_CUDART_MAJOR == 12
using Properties = DeviceProperties12;
#else
using Properties = DeviceProperties13;
#endif

class Attributes {
 public:
  Attributes(const DeviceModel& model, bool managed_on_device) : model_(model), managed_on_device_(managed_on_device) {}
  template <class T>
  void get(T& to, int attribute) const {
    to = static_cast<T>(device_attribute(attribute, model_, managed_on_device_).value_or(0));
  }
  template <class T, size_t N>
  void get(T (&to)[N], std::initializer_list<int> attributes) const {
    std::transform(attributes.begin(), attributes.end(), to, [&](int attribute) {
      return static_cast<T>(device_attribute(attribute, model_, managed_on_device_).value_or(0));
    });
  }

 private:
  const DeviceModel& model_;
  const bool managed_on_device_;
};

void fill_limits(Properties& to, const Attributes& from) {
  from.get(to.sharedMemPerBlock, 8);
  from.get(to.regsPerBlock, 12);
  from.get(to.warpSize, 10);
  from.get(to.memPitch, 11);
  from.get(to.maxThreadsPerBlock, 1);
  from.get(to.maxThreadsDim, {2, 3, 4});
  from.get(to.maxGridSize, {5, 6, 7});
  from.get(to.totalConstMem, 9);
  from.get(to.major, 75);
  from.get(to.minor, 76);
  from.get(to.multiProcessorCount, 16);
  from.get(to.maxThreadsPerMultiProcessor, 39);
  from.get(to.sharedMemPerMultiprocessor, 81);
  from.get(to.regsPerMultiprocessor, 82);
  from.get(to.sharedMemPerBlockOptin, 97);
  from.get(to.reservedSharedMemPerBlock, 111);
  from.get(to.maxBlocksPerMultiProcessor, 106);
  from.get(to.memoryBusWidth, 37);
  from.get(to.l2CacheSize, 38);
  from.get(to.asyncEngineCount, 40);
}

void fill_abilities(Properties& to, const Attributes& from) {
  from.get(to.canMapHostMemory, 19);
  from.get(to.concurrentKernels, 31);
  from.get(to.pciBusID, 33);
  from.get(to.unifiedAddressing, 41);
  from.get(to.streamPrioritiesSupported, 78);
  from.get(to.globalL1CacheSupported, 79);
  from.get(to.localL1CacheSupported, 80);
  from.get(to.managedMemory, 83);
  from.get(to.concurrentManagedAccess, 89);
  from.get(to.computePreemptionSupported, 90);
  from.get(to.cooperativeLaunch, 95);
  from.get(to.hostRegisterSupported, 99);
  from.get(to.memoryPoolsSupported, 115);
#if HEDDLE_CUDART_MAJOR == 12
  from.get(to.clockRate, 13);
  from.get(to.deviceOverlap, 15);
  from.get(to.maxTexture1DLinear, 69);
  from.get(to.memoryClockRate, 36);
  from.get(to.singleToDoublePrecisionPerfRatio, 87);
#else
  from.get(to.deviceNumaId, 131);
  from.get(to.hostNumaId, 134);
#endif
}

void fill_textures(Properties& to, const Attributes& from) {
  from.get(to.textureAlignment, 14);
  from.get(to.texturePitchAlignment, 51);
  from.get(to.maxTexture1D, 21);
  from.get(to.maxTexture1DMipmap, 77);
  from.get(to.maxTexture2D, {22, 23});
  from.get(to.maxTexture2DMipmap, {73, 74});
  from.get(to.maxTexture2DLinear, {70, 71, 72});
  from.get(to.maxTexture2DGather, {45, 46});
  from.get(to.maxTexture3D, {24, 25, 26});
  from.get(to.maxTexture3DAlt, {47, 48, 49});
  from.get(to.maxTextureCubemap, 52);
  from.get(to.maxTexture1DLayered, {42, 43});
  from.get(to.maxTexture2DLayered, {27, 28, 29});
  from.get(to.maxTextureCubemapLayered, {53, 54});
  from.get(to.maxSurface1D, 55);
  from.get(to.maxSurface2D, {56, 57});
  from.get(to.maxSurface3D, {58, 59, 60});
  from.get(to.maxSurface1DLayered, {61, 62});
  from.get(to.maxSurface2DLayered, {63, 64, 65});
  from.get(to.maxSurfaceCubemap, 66);
  from.get(to.maxSurfaceCubemapLayered, {67, 68});
  from.get(to.surfaceAlignment, 30);
}

void fill_identity(Properties& to, const DeviceModel& model, int index) {
  std::snprintf(to.name, sizeof to.name, "%s", model.name);
  const auto uuid = device_uuid(model, index);
  static_assert(sizeof uuid == sizeof to.uuid);
  std::memcpy(to.uuid, uuid.data(), sizeof uuid);
  to.totalGlobalMem = model.memory_bytes;
}

}  // namespace

#if HEDDLE_CUDART_MAJOR == 12
HEDDLE_EXPORT cudaError_t cudaGetDeviceProperties_v2(Properties* to, int device) {
#else
HEDDLE_EXPORT cudaError_t cudaGetDeviceProperties(Properties* to, int device) {
#endif
  return answer([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto session = runtime().session();
    if (!session) return tl::unexpected(std::move(session).error());
    const protocol::Welcome& welcome = (*session)->welcome();
    if (device < 0 || static_cast<uint32_t>(device) >= welcome.device_count) return refuse(cudaErrorInvalidDevice);
    const Attributes attributes(welcome.devices[device], (*session)->managed_on_device());
    *to = {};
    fill_identity(*to, welcome.devices[device], device);
    fill_limits(*to, attributes);
    fill_abilities(*to, attributes);
    fill_textures(*to, attributes);
    return {};
  });
}

// The devices of a session are alike: the first serves any wish that one of them can serve.
HEDDLE_EXPORT cudaError_t cudaChooseDevice(int* device, const Properties* wish) {
  return answer([&]() -> Done {
    if (!device || !wish) return refuse(cudaErrorInvalidValue);
    auto session = runtime().session();
    if (!session) return tl::unexpected(std::move(session).error());
    *device = 0;
    return {};
  });
}

}  // namespace heddle::client
