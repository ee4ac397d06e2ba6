#include "client/driver/modules.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <unordered_map>

#include "client/driver/runtime_functions.h"
#include "client/runtime.h"
#include "image/fatbin.h"

namespace heddle::client {
namespace {

struct Modules {
  std::mutex mutex;  // guards what follows
  std::set<const void*> live;
  std::vector<LoadedModule*> ended;  // never freed: work that names their functions may still be under way
  std::map<ProgramModule*, LoadedModule*> by_program;
  // What was unloaded and may serve when its like is loaded again: programs that compile while they run load the same
  // text over and over, and a session has a limit of modules.
  std::unordered_multimap<std::string_view, ProgramModule*> unloaded;
};
Modules& modules() {
  static auto* const all = new Modules;
  return *all;
}

// Compiler-made ones (string literals) have names that no program writes.
bool is_compiler_made(const image::VariableInfo& variable) {
  return variable.name.starts_with('$');
}

// Nothing is in it that the program could have changed.
bool is_as_loaded(const ProgramModule& module) {
  const auto& variables = module.info().variables;
  return std::all_of(variables.begin(), variables.end(), is_compiler_made);
}

// Under the lock.
void end(ProgramModule& module) {
  module.unregister();
  if (is_as_loaded(module)) modules().unloaded.emplace(module.loaded_image(), &module);
}

ProgramModule* unloaded_like(std::span<const std::byte> fatbin) {
  const std::lock_guard lock(modules().mutex);
  const auto found =
      modules().unloaded.find(std::string_view(reinterpret_cast<const char*>(fatbin.data()), fatbin.size()));
  if (found == modules().unloaded.end()) return nullptr;
  ProgramModule* const module = found->second;
  modules().unloaded.erase(found);
  module->register_again();
  return module;
}

bool has(const std::vector<image::Image>& images, image::ImageKind kind) {
  return std::any_of(images.begin(), images.end(), [&](const image::Image& each) { return each.kind == kind; });
}

// PTX that the device can execute; or machine code where it is a GPU, whose driver knows whether it can.
Done check_runs(const std::vector<image::Image>& images, const DeviceModel& model) {
  const auto chosen = image::choose_ptx_units(images, 10 * model.capability_major + model.capability_minor);
  if (chosen || (model.kind == DeviceKind::kCuda && has(images, image::ImageKind::kCubin))) return {};
  return refuse(cudaErrorNoKernelImageForDevice, "a module that was loaded at run time: " + chosen.error().text +
                                                     "; where NVRTC compiles it, load the text of nvrtcGetPTX");
}

Done check_variables(const ProgramModule& module) {
  for (const image::VariableInfo& variable : module.info().variables) {
    if (variable.managed)
      return refuse(cudaErrorNotSupported,
                    "__managed__ variables are not supported: use cuMemAllocManaged (" + variable.name + ")");
  }
  return {};
}

Answer<ProgramModule*> declare(std::vector<std::byte> fatbin, Session& session) {
  const auto fatbins = image::split_fatbins(fatbin);
  const auto images = fatbins ? image::read_fatbins(*fatbins) : tl::unexpected(fatbins.error());
  if (!images) return refuse(cudaErrorInvalidKernelImage, images.error().text);
  HEDDLE_ANSWER(check_runs(*images, session.welcome().devices[0]));
  ProgramModule* const program = runtime().registry.add_module(std::move(fatbin));
  Done loaded = program->load(session);
  if (loaded) loaded = check_variables(*program);
  if (!loaded) {
    program->unregister();
    Failure why = std::move(loaded).error();
    if (why.code == cudaErrorInvalidKernelImage && has(*images, image::ImageKind::kPtx)) why.code = cudaErrorInvalidPtx;
    return tl::unexpected(std::move(why));
  }
  for (const image::VariableInfo& variable : program->info().variables) {
    if (!variable.constant && !is_compiler_made(variable)) program->has_mutable_variables = true;
  }
  return program;
}

}  // namespace

Answer<Function*> LoadedModule::function(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  const std::string wanted(name);
  if (!module_->info().kernel(wanted)) return refuse(cudaErrorSymbolNotFound);
  Function* const function = runtime().registry.add_function(module_, nullptr, wanted.c_str());
  functions_.emplace(wanted, function);
  return function;
}

Answer<Variable*> LoadedModule::variable(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto known = variables_.find(name); known != variables_.end()) return known->second;
  const std::string wanted(name);
  const image::VariableInfo* const info = module_->info().variable(wanted);
  if (!info) return refuse(cudaErrorSymbolNotFound);
  Variable* const variable =
      runtime().registry.add_variable(module_, nullptr, wanted.c_str(), info->size, info->constant);
  variables_.emplace(wanted, variable);
  return variable;
}

Answer<std::vector<Function*>> LoadedModule::functions() {
  std::vector<Function*> all;
  for (const image::KernelInfo& kernel : module_->info().kernels) {
    auto found = function(kernel.name);
    if (!found) return tl::unexpected(std::move(found).error());
    all.push_back(*found);
  }
  return all;
}

Answer<LoadedModule*> load_module(Result<std::vector<std::byte>> fatbin, Context* context) {
  if (!fatbin) return refuse(cudaErrorInvalidKernelImage, fatbin.error().text);
  auto session = runtime().session();
  if (!session) return tl::unexpected(std::move(session).error());
  ProgramModule* program = unloaded_like(*fatbin);
  if (!program) {
    auto declared = declare(std::move(*fatbin), **session);
    if (!declared) return tl::unexpected(std::move(declared).error());
    program = *declared;
  }
  auto* const module = new LoadedModule(program, context);
  const std::lock_guard lock(modules().mutex);
  modules().live.insert(module);
  modules().by_program.emplace(program, module);
  return module;
}

Answer<LoadedModule*> find_module(const void* handle) {
  const std::lock_guard lock(modules().mutex);
  if (!modules().live.contains(handle)) return refuse(cudaErrorInvalidResourceHandle);
  return static_cast<LoadedModule*>(const_cast<void*>(handle));
}

// Work that uses it may still be under way: only its handles end.
Done unload_module(const void* handle) {
  auto module = find_module(handle);
  if (!module) return tl::unexpected(std::move(module).error());
  if (!(*module)->program().loaded_at_run_time()) return refuse(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(modules().mutex);
  if (modules().live.erase(handle) == 0) return refuse(cudaErrorInvalidResourceHandle);  // by another thread
  modules().ended.push_back(*module);
  end((*module)->program());
  modules().by_program.erase(&(*module)->program());
  return {};
}

void unload_modules_of(const Context& context) {
  const std::lock_guard lock(modules().mutex);
  std::erase_if(modules().by_program, [&](const auto& entry) {
    if (entry.second->context() != &context) return false;
    end(*entry.first);
    modules().live.erase(entry.second);
    modules().ended.push_back(entry.second);
    return true;
  });
}

LoadedModule* module_of(Function& function) {
  const std::lock_guard lock(modules().mutex);
  LoadedModule*& module = modules().by_program[function.module];
  if (!module) {
    module = new LoadedModule(function.module, nullptr);
    modules().live.insert(module);
  }
  return module;
}

Answer<std::pair<CUdeviceptr, size_t>> place_variable(Variable& variable) {
  const LastErrorKept kept;
  void* address = nullptr;
  const cudaError_t code = cudaGetSymbolAddress(&address, &variable);
  if (code != cudaSuccess) return refuse(code);
  return std::pair(reinterpret_cast<CUdeviceptr>(address), variable.size);
}

Answer<std::string> read_image(const char* path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rbe"), &std::fclose);
  if (!file) return refuse(cudaErrorFileNotFound);
  std::string contents;
  char part[1 << 16];
  while (const size_t bytes = std::fread(part, 1, sizeof part, file.get())) contents.append(part, bytes);
  if (std::ferror(file.get())) return refuse(cudaErrorFileNotFound);
  return contents;
}

}  // namespace heddle::client
