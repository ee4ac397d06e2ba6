// cudaLibraryLoadData and its family: the driver's libraries, by the runtime's names.

#include "client/driver/jit_options.h"
#include "client/driver/modules.h"
#include "client/runtime.h"
#include "image/loose_image.h"

namespace heddle::client {
namespace {

using cudaLibrary_t = CUlibrary;

Done load(cudaLibrary_t* to, Result<std::vector<std::byte>> fatbin, const JitLogs& logs) {
  auto module = load_module(std::move(fatbin), nullptr);
  logs.write(module ? nullptr : module.error().text.c_str());
  if (!module) return tl::unexpected(std::move(module).error());
  *to = reinterpret_cast<cudaLibrary_t>(*module);
  return {};
}

// Runs `body` on the library; `to` is where it writes.
template <class To, class Body>
cudaError_t on_library(cudaLibrary_t library, To* to, Body&& body) {
  return answer([&]() -> Done {
    if (!to) return refuse(cudaErrorInvalidValue);
    auto module = find_module(library);
    return module ? body(**module) : Done(tl::unexpected(std::move(module).error()));
  });
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t* to, const void* image, const int* jit, void** jit_values,
                                              unsigned jit_count, const int*, void**, unsigned) {
  return answer([&]() -> Done {
    if (!to || !image) return refuse(cudaErrorInvalidValue);
    return load(to, image::loose_fatbin(image), JitLogs(jit_count, jit, jit_values));
  });
}

HEDDLE_EXPORT cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* to, const char* path, const int* jit,
                                                  void** jit_values, unsigned jit_count, const int*, void**, unsigned) {
  return answer([&]() -> Done {
    if (!to || !path) return refuse(cudaErrorInvalidValue);
    const auto file = read_image(path);
    if (!file) return tl::unexpected(file.error());
    return load(to, image::loose_fatbin(std::string_view(*file)), JitLogs(jit_count, jit, jit_values));
  });
}

HEDDLE_EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return answer([&] { return unload_module(library); });
}

HEDDLE_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t* to, cudaLibrary_t library, const char* name) {
  return on_library(library, to, [&](LoadedModule& module) -> Done {
    if (!name) return refuse(cudaErrorInvalidValue);
    auto function = module.function(name);
    if (!function) return tl::unexpected(std::move(function).error());
    *to = reinterpret_cast<cudaKernel_t>(*function);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return on_library(library, count, [&](const LoadedModule& module) -> Done {
    *count = static_cast<unsigned>(module.function_count());
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* to, unsigned count, cudaLibrary_t library) {
  return on_library(library, to, [&](LoadedModule& module) -> Done {
    auto functions = module.functions();
    if (!functions) return tl::unexpected(std::move(functions).error());
    for (unsigned i = 0; i < count && i < functions->size(); ++i)
      to[i] = reinterpret_cast<cudaKernel_t>((*functions)[i]);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaLibraryGetGlobal(void** address, size_t* bytes, cudaLibrary_t library, const char* name) {
  return on_library(library, address, [&](LoadedModule& module) -> Done {
    if (!name) return refuse(cudaErrorInvalidValue);
    auto variable = module.variable(name);
    if (!variable) return tl::unexpected(std::move(variable).error());
    const auto place = place_variable(**variable);
    if (!place) return tl::unexpected(place.error());
    *address = reinterpret_cast<void*>(place->first);
    if (bytes) *bytes = place->second;
    return {};
  });
}

// A library with managed variables is not loaded.
HEDDLE_EXPORT cudaError_t cudaLibraryGetManaged(void** address, size_t*, cudaLibrary_t library, const char*) {
  return on_library(library, address, [](const LoadedModule&) -> Done { return refuse(cudaErrorSymbolNotFound); });
}

}  // namespace heddle::client
