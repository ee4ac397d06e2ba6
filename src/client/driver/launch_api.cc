// Launches.

#include <vector>

#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/runtime_functions.h"
#include "client/stream/launch.h"

namespace heddle::client {
namespace {

// The kernel's arguments, however the program hands them over, as the runtime takes them: a pointer to each.
class Arguments {
 public:
  // cudaErrorInvalidValue where they are given in both ways, or in none.
  static Answer<Arguments> of(const void* kernel, void** parameters, void** extra) {
    auto function = prepared_function(kernel);
    if (!function) return tl::unexpected(std::move(function).error());
    const image::KernelInfo& info = *(*function)->info.load(std::memory_order_acquire);
    if (parameters && extra) return refuse(cudaErrorInvalidValue);
    if (!parameters && !extra && !info.parameters.empty()) return refuse(cudaErrorInvalidValue);
    Arguments arguments(parameters);
    if (!extra) return arguments;
    const auto buffer = packed_parameters(extra, info.parameter_bytes);
    if (!buffer) return tl::unexpected(buffer.error());
    for (const auto& [offset, size] : info.parameters) arguments.own_.push_back(*buffer + offset);
    return arguments;
  }
  void** get() { return own_.empty() ? given_ : own_.data(); }

 private:
  explicit Arguments(void** given) : given_(given) {}
  void** given_;
  std::vector<void*> own_;
};

// Runs `launch(arguments)`.
template <class Launch>
CUresult launch_with(CUfunction function, void** parameters, void** extra, cudaStream_t stream, Launch&& launch) {
  return in_stream(stream, [&]() -> Done {
    auto arguments = Arguments::of(function, parameters, extra);
    if (!arguments) return tl::unexpected(std::move(arguments).error());
    const LastErrorKept kept;
    const cudaError_t code = launch(arguments->get());
    return code == cudaSuccess ? Done{} : refuse(code);
  });
}

CUresult launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, cudaStream_t stream, void** parameters,
                void** extra) {
  return launch_with(function, parameters, extra, stream, [&](void** arguments) {
    return cudaLaunchKernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, arguments, shared_bytes,
                            stream);
  });
}

CUresult launch_cooperative(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, cudaStream_t stream,
                            void** parameters) {
  return launch_with(function, parameters, nullptr, stream, [&](void** arguments) {
    return cudaLaunchCooperativeKernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, arguments,
                                       shared_bytes, stream);
  });
}

CUresult launch_with_config(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  const cudaLaunchConfig_t same{{config->gridDimX, config->gridDimY, config->gridDimZ},
                                {config->blockDimX, config->blockDimY, config->blockDimZ},
                                config->sharedMemBytes,
                                config->hStream,
                                config->attrs,
                                config->numAttrs};
  return launch_with(function, parameters, extra, config->hStream,
                     [&](void** arguments) { return cudaLaunchKernelExC(&same, function, arguments); });
}

}  // namespace

std::span<const DriverFunction> driver_launch_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER_PTSZ(cuLaunchKernel, 4000, launch),
      HEDDLE_DRIVER_PTSZ(cuLaunchKernelEx, 11060, launch_with_config),
      HEDDLE_DRIVER_PTSZ(cuLaunchCooperativeKernel, 9000, launch_cooperative),
  };
  return rows;
}

}  // namespace heddle::client
