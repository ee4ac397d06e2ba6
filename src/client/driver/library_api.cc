// Libraries: modules that belong to no context, and their kernels, which are functions on every device.

#include "client/driver/functions.h"
#include "client/driver/jit_options.h"
#include "client/driver/modules.h"
#include "client/driver/runtime_functions.h"
#include "client/stream/launch.h"
#include "image/loose_image.h"

namespace heddle::client {
namespace {

CUkernel handle_of(Function* function) {
  return reinterpret_cast<CUkernel>(function);
}

Done load(CUlibrary* to, Result<std::vector<std::byte>> fatbin, const JitLogs& logs) {
  if (!to) return refuse(cudaErrorInvalidValue);
  auto module = load_module(std::move(fatbin), nullptr);
  logs.write(module ? nullptr : module.error().text.c_str());
  if (!module) return tl::unexpected(std::move(module).error());
  *to = reinterpret_cast<CUlibrary>(*module);
  return {};
}

// CU_LIBRARY_BINARY_IS_PRESERVED changes nothing: the image is copied. The other option hands over a table of host
// functions.
Done check_options(unsigned count, const int* options) {
  constexpr int kUnifiedTable = 0;
  for (unsigned i = 0; options && i < count; ++i) {
    if (options[i] == kUnifiedTable)
      return refuse(cudaErrorNotSupported,
                    "cuLibraryLoadData: CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE is not supported");
  }
  return {};
}

CUresult load_data(CUlibrary* to, const void* image, const int* jit, void** jit_values, unsigned jit_count,
                   const int* options, void**, unsigned count) {
  return in_driver([&]() -> Done {
    if (!image) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_options(count, options));
    return load(to, image::loose_fatbin(image), JitLogs(jit_count, jit, jit_values));
  });
}

CUresult load_file(CUlibrary* to, const char* path, const int* jit, void** jit_values, unsigned jit_count,
                   const int* options, void**, unsigned count) {
  return in_driver([&]() -> Done {
    if (!path) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(check_options(count, options));
    const auto file = read_image(path);
    if (!file) return tl::unexpected(file.error());
    return load(to, image::loose_fatbin(std::string_view(*file)), JitLogs(jit_count, jit, jit_values));
  });
}

CUresult unload(CUlibrary library) {
  return in_driver([&] { return unload_module(library); });
}

// Runs `body` on the library; `to` is where it writes.
template <class To, class Body>
CUresult on_library(CUlibrary handle, To* to, Body&& body) {
  return in_driver([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto module = find_module(handle);
    return module ? body(**module) : Done(tl::unexpected(std::move(module).error()));
  });
}

CUresult get_kernel(CUkernel* to, CUlibrary library, const char* name) {
  return on_library(library, to, [&](LoadedModule& module) -> Done {
    if (!name) return refuse(cudaErrorInvalidValue);
    auto function = module.function(name);
    if (!function) return tl::unexpected(std::move(function).error());
    *to = handle_of(*function);
    return {};
  });
}

CUresult kernel_count(unsigned* count, CUlibrary library) {
  return on_library(library, count, [&](const LoadedModule& module) -> Done {
    *count = static_cast<unsigned>(module.function_count());
    return {};
  });
}

CUresult enumerate_kernels(CUkernel* to, unsigned count, CUlibrary library) {
  return on_library(library, to, [&](LoadedModule& module) -> Done {
    auto functions = module.functions();
    if (!functions) return tl::unexpected(std::move(functions).error());
    for (unsigned i = 0; i < count && i < functions->size(); ++i) to[i] = handle_of((*functions)[i]);
    return {};
  });
}

CUresult get_module(CUmodule* to, CUlibrary library) {
  return on_library(library, to, [&](LoadedModule& module) -> Done {
    HEDDLE_ANSWER(needs_context());
    *to = reinterpret_cast<CUmodule>(&module);
    return {};
  });
}

CUresult get_global(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return in_context([&]() -> Done {
    auto module = find_module(library);
    if (!module) return tl::unexpected(std::move(module).error());
    if (!name || (!address && !bytes)) return refuse(cudaErrorInvalidValue);
    auto variable = (*module)->variable(name);
    if (!variable) return tl::unexpected(std::move(variable).error());
    if (bytes) *bytes = (*variable)->size;
    if (!address) return {};
    const auto place = place_variable(**variable);
    if (!place) return tl::unexpected(place.error());
    *address = place->first;
    return {};
  });
}

// A library with managed variables is not loaded.
CUresult no_managed(CUdeviceptr* address, size_t*, CUlibrary library, const char*) {
  return on_library(library, address, [](const LoadedModule&) -> Done { return refuse(cudaErrorSymbolNotFound); });
}

// --- kernels ---
// Runs `body` on the kernel; `to` is where it writes.
template <class To, class Body>
CUresult on_kernel(CUkernel kernel, To* to, Body&& body) {
  return in_driver([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto function = prepared_function(kernel);
    return function ? body(**function) : Done(tl::unexpected(std::move(function).error()));
  });
}

CUresult kernel_function(CUfunction* to, CUkernel kernel) {
  return on_kernel(kernel, to, [&](Function& function) -> Done {
    HEDDLE_ANSWER(needs_context());
    *to = reinterpret_cast<CUfunction>(&function);
    return {};
  });
}

CUresult kernel_library(CUlibrary* to, CUkernel kernel) {
  return on_kernel(kernel, to, [&](Function& function) -> Done {
    *to = reinterpret_cast<CUlibrary>(module_of(function));
    return {};
  });
}

}  // namespace

std::span<const DriverFunction> driver_library_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuLibraryLoadData, 12000, load_data),
      HEDDLE_DRIVER(cuLibraryLoadFromFile, 12000, load_file),
      HEDDLE_DRIVER(cuLibraryUnload, 12000, unload),
      HEDDLE_DRIVER(cuLibraryGetKernel, 12000, get_kernel),
      HEDDLE_DRIVER(cuLibraryGetKernelCount, 12040, kernel_count),
      HEDDLE_DRIVER(cuLibraryEnumerateKernels, 12040, enumerate_kernels),
      HEDDLE_DRIVER(cuLibraryGetModule, 12000, get_module),
      HEDDLE_DRIVER(cuLibraryGetGlobal, 12000, get_global),
      HEDDLE_DRIVER(cuLibraryGetManaged, 12000, no_managed),
      HEDDLE_DRIVER(cuKernelGetFunction, 12000, kernel_function),
      HEDDLE_DRIVER(cuKernelGetLibrary, 12050, kernel_library),
      HEDDLE_DRIVER(cuKernelGetName, 12030, SameAnywhere<&cudaFuncGetName>::call),
  };
  return rows;
}

}  // namespace heddle::client
