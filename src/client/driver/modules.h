#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "client/driver/driver_answer.h"
#include "client/registry.h"

// Modules and libraries that the program loads at run time, and the handles of their kernels and variables.
//
// A module's image becomes a fat binary (image/loose_image.h) and a ProgramModule like those of nvcc's startup code: it
// is declared to heddled and journalled, workers load it, and it is there again after a worker's death. CUfunction and
// CUkernel are both the registry's Function, so that cuLaunchKernel, cudaLaunchKernel and graphs take either, and one
// that cudaGetFuncBySymbol gave. CUmodule and CUlibrary are both a LoadedModule: heddle's modules belong to no context.
//
// Thread safety: any thread. Objects are never destroyed; an unloaded module's handles are known to be none.
namespace heddle::client {

class LoadedModule {
 public:
  LoadedModule(ProgramModule* module, Context* context) : module_(module), context_(context) {}

  ProgramModule& program() { return *module_; }
  Context* context() const { return context_; }
  // cudaErrorSymbolNotFound where the module has none of that name. The same handle each time.
  Answer<Function*> function(std::string_view name);
  Answer<Variable*> variable(std::string_view name);
  Answer<std::vector<Function*>> functions();
  size_t function_count() const { return module_->info().kernels.size(); }

 private:
  ProgramModule* const module_;
  Context* const context_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, Function*, std::less<>> functions_;
  std::map<std::string, Variable*, std::less<>> variables_;
};

// Loads fat binaries, one behind the other. `context` owns the module; null: nobody does. cudaErrorInvalidPtx,
// cudaErrorInvalidKernelImage, or cudaErrorNoKernelImageForDevice, with the reason in the text.
Answer<LoadedModule*> load_module(Result<std::vector<std::byte>> fatbin, Context* context);
// cudaErrorInvalidResourceHandle for what is none.
Answer<LoadedModule*> find_module(const void* handle);
Done unload_module(const void* handle);
// Those of a context that ends.
void unload_modules_of(const Context& context);
// The module that a kernel is of, also where nvcc's startup code registered it.
LoadedModule* module_of(Function& function);

// Where a variable lies on the current device, and how large it is.
Answer<std::pair<CUdeviceptr, size_t>> place_variable(Variable& variable);

// The contents of a file. cudaErrorFileNotFound.
Answer<std::string> read_image(const char* path);

}  // namespace heddle::client
