// Launches, in the forms that nvcc's stubs and programs use.

#include "client/api/submit.h"
#include "client/stream/launch.h"

namespace heddle::client {
namespace {

Done launch(const void* key, Function& function, const LaunchShape& shape, void** arguments, cudaStream_t stream) {
  const auto on = enter_stream(stream);
  if (!on) [[unlikely]]
    return tl::unexpected(on.error());
  const auto work = [&]() -> Answer<Work> {
    HEDDLE_ANSWER(check_launch(function, shape, *on->device));
    return kernel_work(key, function, on->device, shape, arguments);
  };
  return submit(*on, work, [&] { return launch_on(*on, function, shape, arguments); });
}

cudaError_t launch_by_key(const void* key, const LaunchShape& shape, void** arguments, cudaStream_t stream) {
  return answer([&]() -> Done {
    auto function = prepared_function(key);
    if (!function) [[unlikely]]
      return tl::unexpected(std::move(function).error());
    return launch(key, **function, shape, arguments, stream);
  });
}

Done find_kernel(cudaKernel_t* kernel, const void* host) {
  Function* function = runtime().registry.function(host);
  if (!kernel) return refuse(cudaErrorInvalidValue);
  if (!function) return refuse(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(function);
  return {};
}

}  // namespace

HEDDLE_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return answer([&] { return find_kernel(kernel, host); });
}

HEDDLE_EXPORT cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return answer([&] { return find_kernel(kernel, host); });
}

HEDDLE_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                             size_t shared_bytes, cudaStream_t stream) {
  return launch_by_key(kernel, {grid, block, shared_bytes, false}, arguments, stream);
}

HEDDLE_EXPORT cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                           size_t shared_bytes, cudaStream_t stream) {
  return launch_by_key(function, {grid, block, shared_bytes, false}, arguments, stream);
}

HEDDLE_EXPORT cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                                      size_t shared_bytes, cudaStream_t stream) {
  return launch_by_key(function, {grid, block, shared_bytes, true}, arguments, stream);
}

HEDDLE_EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                              void** arguments) {
  return answer([&]() -> Done {
    if (!config) return refuse(cudaErrorInvalidValue);
    LaunchShape shape{config->gridDim, config->blockDim, config->dynamicSmemBytes, false};
    for (unsigned i = 0; i < config->numAttrs; ++i) HEDDLE_ANSWER(apply_attribute(config->attrs[i], shape));
    auto prepared = prepared_function(function);
    if (!prepared) return tl::unexpected(std::move(prepared).error());
    return launch(function, **prepared, shape, arguments, config->stream);
  });
}

}  // namespace heddle::client
