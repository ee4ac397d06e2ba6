// Modules: loading them, and what is in them.

#include "client/driver/functions.h"
#include "client/driver/jit_options.h"
#include "client/driver/modules.h"
#include "image/loose_image.h"

namespace heddle::client {
namespace {

constexpr int kLazyLoading = 2;  // CU_MODULE_LAZY_LOADING: kernels come to the device with their first launch

CUmodule handle_of(LoadedModule* module) {
  return reinterpret_cast<CUmodule>(module);
}
CUfunction handle_of(Function* function) {
  return reinterpret_cast<CUfunction>(function);
}

Done load(CUmodule* to, Result<std::vector<std::byte>> fatbin) {
  if (!to) return refuse(cudaErrorInvalidValue);
  auto module = load_module(std::move(fatbin), thread_place().context);
  if (!module) return tl::unexpected(std::move(module).error());
  *to = handle_of(*module);
  return {};
}

CUresult load_data(CUmodule* to, const void* image) {
  return in_context([&] { return image ? load(to, image::loose_fatbin(image)) : refuse(cudaErrorInvalidValue); });
}

CUresult load_data_with(CUmodule* to, const void* image, unsigned count, const int* options, void** values) {
  const JitLogs logs(count, options, values);
  return in_context([&]() -> Done {
    if (!image) return refuse(cudaErrorInvalidValue);
    Done done = load(to, image::loose_fatbin(image));
    logs.write(done ? nullptr : done.error().text.c_str());
    return done;
  });
}

CUresult load_file(CUmodule* to, const char* path) {
  return in_context([&]() -> Done {
    if (!path) return refuse(cudaErrorInvalidValue);
    const auto file = read_image(path);
    if (!file) return tl::unexpected(file.error());
    return load(to, image::loose_fatbin(std::string_view(*file)));
  });
}

CUresult unload(CUmodule module) {
  return in_driver([&] { return unload_module(module); });
}

// Runs `body` on the module.
template <class Body>
CUresult on_module(CUmodule handle, Body&& body) {
  return in_context([&]() -> Done {
    auto module = find_module(handle);
    return module ? body(**module) : Done(tl::unexpected(std::move(module).error()));
  });
}

CUresult get_function(CUfunction* to, CUmodule handle, const char* name) {
  return on_module(handle, [&](LoadedModule& module) -> Done {
    if (!to || !name) return refuse(cudaErrorInvalidValue);
    auto function = module.function(name);
    if (!function) return tl::unexpected(std::move(function).error());
    *to = handle_of(*function);
    return {};
  });
}

CUresult function_count(unsigned* count, CUmodule handle) {
  return on_module(handle, [&](LoadedModule& module) -> Done {
    if (!count) return refuse(cudaErrorInvalidValue);
    *count = static_cast<unsigned>(module.function_count());
    return {};
  });
}

CUresult enumerate_functions(CUfunction* to, unsigned count, CUmodule handle) {
  return on_module(handle, [&](LoadedModule& module) -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto functions = module.functions();
    if (!functions) return tl::unexpected(std::move(functions).error());
    for (unsigned i = 0; i < count && i < functions->size(); ++i) to[i] = handle_of((*functions)[i]);
    return {};
  });
}

CUresult get_global(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  return on_module(handle, [&](LoadedModule& module) -> Done {
    if (!name || (!address && !bytes)) return refuse(cudaErrorInvalidValue);
    auto variable = module.variable(name);
    if (!variable) return tl::unexpected(std::move(variable).error());
    if (bytes) *bytes = (*variable)->size;
    if (!address) return {};
    const auto place = place_variable(**variable);
    if (!place) return tl::unexpected(place.error());
    *address = place->first;
    return {};
  });
}

CUresult loading_mode(int* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  return in_driver([&]() -> Done {
    *mode = kLazyLoading;
    return {};
  });
}

}  // namespace

std::span<const DriverFunction> driver_module_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuModuleLoad, 2000, load_file),
      HEDDLE_DRIVER(cuModuleLoadData, 2000, load_data),
      HEDDLE_DRIVER(cuModuleLoadDataEx, 2010, load_data_with),
      HEDDLE_DRIVER(cuModuleLoadFatBinary, 2000, load_data),
      HEDDLE_DRIVER(cuModuleUnload, 2000, unload),
      HEDDLE_DRIVER(cuModuleGetFunction, 2000, get_function),
      HEDDLE_DRIVER(cuModuleGetFunctionCount, 12040, function_count),
      HEDDLE_DRIVER(cuModuleEnumerateFunctions, 12040, enumerate_functions),
      HEDDLE_DRIVER(cuModuleGetGlobal_v2, 3020, get_global),
      HEDDLE_DRIVER(cuModuleGetLoadingMode, 11070, loading_mode),
  };
  return rows;
}

}  // namespace heddle::client
