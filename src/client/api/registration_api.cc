// What nvcc's generated code calls before main and around launches.

#include <array>
#include <cstdlib>

#include "client/runtime.h"

namespace heddle::client {
namespace {

// <<<...>>> pushes, the stub of the kernel pops; nested only when an argument launches something itself.
struct CallConfiguration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};
constexpr size_t kMaxNesting = 16;
thread_local std::array<CallConfiguration, kMaxNesting> t_configurations;
thread_local size_t t_configuration_count = 0;

ProgramModule* module_of(void** handle) {
  return reinterpret_cast<ProgramModule*>(handle);
}

}  // namespace

HEDDLE_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  ProgramModule* module = nullptr;
  answer([&]() -> Done {
    module = runtime().registry.add_module(wrapper);
    return {};
  });
  return reinterpret_cast<void**>(module);
}

HEDDLE_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

HEDDLE_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  if (handle) module_of(handle)->unregister();
}

HEDDLE_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                                          dim3*, dim3*, int*) {
  answer([&]() -> Done {
    if (handle) runtime().registry.add_function(module_of(handle), host, name);
    return {};
  });
}

HEDDLE_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int constant,
                                     int) {
  answer([&]() -> Done {
    if (handle) runtime().registry.add_variable(module_of(handle), host, name, size, constant != 0);
    return {};
  });
}

HEDDLE_EXPORT void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}

// Kernels of the module are refused at launch, saying why. The program's own accesses go to plain memory till then.
HEDDLE_EXPORT void __cudaRegisterManagedVar(void** handle, void** host, char*, const char*, int, size_t size, int,
                                            int) {
  if (handle) module_of(handle)->has_managed_variables = true;
  *host = std::calloc(1, size);
}

HEDDLE_EXPORT char __cudaInitModule(void**) {
  return 1;
}

HEDDLE_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  if (t_configuration_count == kMaxNesting) return static_cast<unsigned>(remember(cudaErrorLaunchFailure));
  t_configurations[t_configuration_count++] = {grid, block, shared_bytes, stream};
  return 0;
}

HEDDLE_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (t_configuration_count == 0) return remember(cudaErrorMissingConfiguration);
  const CallConfiguration& configuration = t_configurations[--t_configuration_count];
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

}  // namespace heddle::client
