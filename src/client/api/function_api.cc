// What a kernel is like, and how many of its blocks fit.

#include <algorithm>

#include "client/stream/launch.h"
#include "core/occupancy.h"

namespace heddle::client {
namespace {

struct Target {
  Function* function;
  const image::KernelInfo* info;
  VirtualDevice* device;
};

Answer<Target> target_of(const void* key) {
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  auto function = prepared_function(key);
  if (!function) return tl::unexpected(std::move(function).error());
  return Target{*function, (*function)->info.load(std::memory_order_acquire), *device};
}

// Runs `body` on the kernel that `key` means.
template <class Body>
cudaError_t on_kernel(const void* key, Body&& body) {
  return answer([&]() -> Done {
    auto target = target_of(key);
    if (!target) return tl::unexpected(std::move(target).error());
    return body(*target);
  });
}

int max_threads(const Target& target) {
  const DeviceModel& model = target.device->model();
  return static_cast<int>(std::min(target.info->max_threads, most_threads(target.info->registers, model)));
}

Done attributes(const Target& target, cudaFuncAttributes* to) {
  if (!to) return refuse(cudaErrorInvalidValue);
  const DeviceModel& model = target.device->model();
  const uint32_t asked = target.function->max_dynamic_shared.load();
  *to = {};
  to->sharedSizeBytes = target.info->static_shared;
  to->constSizeBytes = target.info->constant_bytes;
  to->localSizeBytes = target.info->local_bytes;
  to->maxThreadsPerBlock = max_threads(target);
  to->numRegs = static_cast<int>(target.info->registers);
  // CUB chooses among its kernels by the first: those of an architecture that the program was not built for are absent.
  to->ptxVersion = static_cast<int>(target.function->module->info().arch);
  to->binaryVersion = static_cast<int>(10 * model.capability_major + model.capability_minor);
  to->maxDynamicSharedSizeBytes =
      static_cast<int>(asked ? asked : model.shared_bytes_per_block - target.info->static_shared);
  to->preferredShmemCarveout = target.function->carveout.load();
  return {};
}

Done set_attribute(const Target& target, cudaFuncAttribute attribute, int value) {
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      const DeviceModel& model = target.device->model();
      const uint32_t most = std::max(model.shared_bytes_per_block_optin, model.shared_bytes_per_block);
      if (value < 0 || static_cast<uint32_t>(value) + target.info->static_shared > most)
        return refuse(cudaErrorInvalidValue);
      target.function->max_dynamic_shared = static_cast<uint32_t>(value);
      return {};
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return refuse(cudaErrorInvalidValue);
      target.function->carveout = value;
      return {};
    default:
      return refuse(cudaErrorNotSupported,
                    stringf("kernel attribute %d (clusters) is not supported", static_cast<int>(attribute)));
  }
}

Done active_blocks(const Target& target, int* blocks, int block_size, size_t dynamic_shared) {
  if (!blocks || block_size <= 0) return refuse(cudaErrorInvalidValue);
  const DeviceModel& model = target.device->model();
  const uint64_t shared = target.info->static_shared + dynamic_shared;
  const uint32_t optin = target.function->max_dynamic_shared.load() > 0 ? model.shared_bytes_per_block_optin : 0;
  const bool fits = static_cast<uint32_t>(block_size) <= static_cast<uint32_t>(max_threads(target)) &&
                    shared <= std::max(optin, model.shared_bytes_per_block);
  const BlockNeed need{static_cast<uint32_t>(block_size), target.info->registers, shared};
  *blocks = fits ? static_cast<int>(blocks_per_sm(need, model)) : 0;
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* function) {
  return on_kernel(function, [&](const Target& target) { return attributes(target, to); });
}

HEDDLE_EXPORT cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return on_kernel(function, [&](const Target& target) { return set_attribute(target, attribute, value); });
}

HEDDLE_EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                                          int) {
  return on_kernel(kernel, [&](const Target& target) { return set_attribute(target, attribute, value); });
}

HEDDLE_EXPORT cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  if (config < cudaFuncCachePreferNone || config > cudaFuncCachePreferEqual) return remember(cudaErrorInvalidValue);
  return on_kernel(function, [](const Target&) { return Done{}; });  // a hint
}

HEDDLE_EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void* function, int) {
  return on_kernel(function, [](const Target&) { return Done{}; });  // no effect on any device since Maxwell
}

HEDDLE_EXPORT cudaError_t cudaFuncGetName(const char** name, const void* key) {
  return answer([&]() -> Done {
    const Function* function = runtime().registry.function(key);
    if (!name) return refuse(cudaErrorInvalidValue);
    if (!function) return refuse(cudaErrorInvalidDeviceFunction);
    *name = function->name.c_str();
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return on_kernel(function, [&](const Target& target) -> Done {
    if (!offset || index >= target.info->parameters.size()) return refuse(cudaErrorInvalidValue);
    *offset = target.info->parameters[index].offset;
    if (size) *size = target.info->parameters[index].size;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                        int block_size, size_t dynamic_shared) {
  return on_kernel(function,
                   [&](const Target& target) { return active_blocks(target, blocks, block_size, dynamic_shared); });
}

HEDDLE_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                                 int block_size, size_t dynamic_shared,
                                                                                 unsigned) {
  return on_kernel(function,
                   [&](const Target& target) { return active_blocks(target, blocks, block_size, dynamic_shared); });
}

HEDDLE_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                                    int block_size) {
  return on_kernel(function, [&](const Target& target) -> Done {
    if (!bytes || blocks <= 0 || block_size <= 0) return refuse(cudaErrorInvalidValue);
    const BlockNeed need{static_cast<uint32_t>(block_size), target.info->registers, target.info->static_shared};
    *bytes = shared_bytes_left(need, static_cast<uint32_t>(blocks), target.device->model());
    return {};
  });
}

}  // namespace heddle::client
