#include "client/registry.h"

#include <algorithm>

#include "client/link/session.h"
#include "image/describe.h"
#include "image/fatbin.h"

namespace heddle::client {
namespace {

// The code in CUDA's own words: nothing that a device could run, or nothing that makes sense.
Failure as_failure(const Error& error) {
  if (error.code == ErrorCode::kNotFound) return {cudaErrorNoKernelImageForDevice, error.text};
  if (error.code == ErrorCode::kOutOfMemory) return {cudaErrorMemoryAllocation, error.text};
  return {cudaErrorInvalidKernelImage, error.text};
}

}  // namespace

Result<std::vector<std::span<const std::byte>>> ProgramModule::fatbins() const {
  return wrapper_ ? image::fatbins_of_wrapper(wrapper_) : image::split_fatbins(loaded_image_);
}

Done ProgramModule::load(Session& session) {
  if (loaded_.load(std::memory_order_acquire)) return result_;
  const std::lock_guard lock(mutex_);
  if (loaded_.load(std::memory_order_relaxed)) return result_;
  result_ = read_and_declare(session);
  loaded_.store(true, std::memory_order_release);
  return result_;
}

Done ProgramModule::read_and_declare(Session& session) {
  if (has_managed_variables)
    return refuse(cudaErrorNotSupported, "__managed__ variables are not supported: use cudaMallocManaged");
  const auto fatbins = this->fatbins();
  if (!fatbins) return tl::unexpected(as_failure(fatbins.error()));
  const auto images = image::read_fatbins(*fatbins);
  if (!images) return tl::unexpected(as_failure(images.error()));
  const DeviceModel& model = session.welcome().devices[0];  // all devices of a session are of one model
  auto info = image::describe(*images, 10 * model.capability_major + model.capability_minor);
  if (!info) return tl::unexpected(as_failure(info.error()));
  auto id = session.declare_module(*fatbins);
  if (!id) return tl::unexpected(std::move(id).error());
  info_ = std::move(*info);
  for (const image::VariableInfo& variable : info_.variables) variable_bytes_ += variable.size;
  id_ = *id;
  return {};
}

void ProgramModule::read_effects(uint32_t arch) {
  if (std::exchange(examined_, true)) return;
  const auto fatbins = this->fatbins();
  const auto images = fatbins ? image::read_fatbins(*fatbins) : tl::unexpected(fatbins.error());
  if (!images) return;
  if (auto kernels = image::effects(*images, arch)) effects_ = std::move(*kernels);
}

AddressUse ProgramModule::addresses(uint32_t arch) {
  const std::lock_guard lock(mutex_);
  read_effects(arch);
  if (!effects_) return {};
  AddressUse use{false, false};
  for (const image::KernelEffects& kernel : *effects_) {
    use.kept |= kernel.keeps_addresses();
    use.followed |= kernel.follows_memory || kernel.writes_anything;
  }
  return use;
}

const image::KernelEffects* ProgramModule::effects(const std::string& kernel, uint32_t arch) {
  const std::lock_guard lock(mutex_);
  read_effects(arch);
  if (!effects_) return nullptr;
  const auto found = std::find_if(effects_->begin(), effects_->end(),
                                  [&](const image::KernelEffects& known) { return known.name == kernel; });
  return found == effects_->end() ? nullptr : &*found;
}

Done Function::prepare(Session& session) {
  HEDDLE_ANSWER(module->load(session));
  const auto& kernels = module->info().kernels;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].name != name) continue;
    index.store(i, std::memory_order_relaxed);
    info.store(&kernels[i], std::memory_order_release);
    return {};
  }
  return refuse(cudaErrorInvalidDeviceFunction, "the program's code has no kernel " + name);
}

Answer<uint32_t> Variable::prepare(Session& session) {
  HEDDLE_ANSWER(module->load(session));
  const auto& variables = module->info().variables;
  for (uint32_t i = 0; i < variables.size(); ++i) {
    if (variables[i].name == name) return i;
  }
  return refuse(cudaErrorInvalidSymbol, "the program's code has no variable " + name);
}

ProgramModule* Registry::add_module(const void* wrapper) {
  const std::lock_guard lock(mutex_);
  return &modules_.emplace_back(wrapper);
}

ProgramModule* Registry::add_module(std::vector<std::byte> loaded) {
  const std::lock_guard lock(mutex_);
  return &modules_.emplace_back(std::move(loaded));
}

bool Registry::has_registered_modules() {
  const std::lock_guard lock(mutex_);
  return std::any_of(modules_.begin(), modules_.end(),
                     [](const ProgramModule& module) { return !module.loaded_at_run_time(); });
}

bool Registry::hides_addresses(uint32_t arch) {
  const std::lock_guard lock(mutex_);
  for (; examined_ < modules_.size(); ++examined_) {
    const auto addresses = modules_[examined_].addresses(arch);
    found_.kept |= addresses.kept;
    found_.followed |= addresses.followed;
  }
  return found_.kept && found_.followed;
}

Function* Registry::add_function(ProgramModule* module, const void* host, const char* name) {
  const std::lock_guard lock(mutex_);
  Function& function = all_functions_.emplace_back(module, name);
  if (host) functions_.insert(host, &function);
  functions_.insert(&function, &function);
  return &function;
}

Variable* Registry::add_variable(ProgramModule* module, const void* host, const char* name, size_t size,
                                 bool constant) {
  const std::lock_guard lock(mutex_);
  Variable& variable = all_variables_.emplace_back(module, name, size, constant);
  variables_.insert(host ? host : &variable, &variable);
  if (!constant) module->has_mutable_variables = true;
  return &variable;
}

}  // namespace heddle::client
