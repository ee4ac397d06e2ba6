#include "device/software/program.h"

#include <algorithm>

#include "device/software/ptx/declaration.h"
#include "device/software/ptx/link.h"
#include "device/software/ptx/parser.h"
#include "image/describe.h"
#include "image/fatbin.h"

namespace heddle::software {
namespace {

constexpr uint64_t kLeastAlignment = 16;

bool in_device_memory(const ptx::Variable& variable) {
  return !variable.external && variable.size > 0 &&
         (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst);
}

std::span<std::byte> bytes_at(const device::Variable& variable) {
  return {reinterpret_cast<std::byte*>(static_cast<uintptr_t>(variable.address)), variable.bytes};
}

Result<ptx::Module> linked_ptx(std::span<const image::Image> images, uint32_t capability) {
  auto chosen = image::choose_ptx_units(images, capability);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<ptx::Module> units;
  for (const image::Image* unit : *chosen) {
    auto parsed = ptx::parse(unit->bytes);
    if (!parsed) return tl::unexpected(parsed.error());
    units.push_back(std::move(*parsed));
  }
  return ptx::link(std::move(units));
}

}  // namespace

Result<std::unique_ptr<Program>> Program::load(std::span<const std::byte> fatbin, uint32_t capability,
                                               DeviceMemory& memory) {
  auto fatbins = image::split_fatbins(fatbin);
  if (!fatbins) return tl::unexpected(fatbins.error());
  auto images = image::read_fatbins(*fatbins);
  if (!images) return tl::unexpected(images.error());
  auto linked = linked_ptx(*images, capability);
  if (!linked) return tl::unexpected(linked.error());

  std::unique_ptr<Program> program(new Program);
  program->ptx_ = std::move(*linked);
  if (auto described = image::describe(*images, capability)) program->described_ = std::move(*described);
  HEDDLE_TRY(program->place_variables(memory));
  program->write_initial_values();
  return program;
}

Status Program::place_variables(DeviceMemory& memory) {
  uint64_t bytes = 0;
  for (const ptx::Variable& variable : ptx_.variables) {
    if (!in_device_memory(variable)) continue;
    bytes = round_up(bytes, std::max<uint64_t>(variable.alignment, kLeastAlignment));
    variables_[variable.name] = {bytes, variable.size};  // an offset, for now
    bytes += variable.size;
  }
  if (bytes == 0) return {};
  auto base = memory.add_variables(bytes);
  if (!base) return tl::unexpected(base.error());
  for (auto& [name, variable] : variables_) variable.address += *base;
  return {};
}

// A variable that cannot be initialised (a table of functions, say) spoils only what uses it, not the whole module.
void Program::write_initial_values() {
  auto resolve = [this](std::string_view name) { return address_of(name); };
  for (const ptx::Variable& variable : ptx_.variables) {
    if (!in_device_memory(variable)) continue;
    auto written = ptx::write_initial_value(variable, resolve, bytes_at(variables_.at(variable.name)));
    if (!written) refused_variables_[variable.name] = written.error();
  }
}

std::optional<uint64_t> Program::address_of(std::string_view name) const {
  auto found = variables_.find(std::string(name));
  if (found == variables_.end()) return function_address(ptx_, name);
  if (refused_variables_.count(found->first)) return std::nullopt;
  return found->second.address;
}

void Program::read_effects(std::span<const std::byte> fatbin, uint32_t capability) {
  const auto fatbins = image::split_fatbins(fatbin);
  const auto images = fatbins ? image::read_fatbins(*fatbins) : tl::unexpected(fatbins.error());
  auto effects = images ? image::effects(*images, capability) : tl::unexpected(images.error());
  if (effects) effects_ = std::move(*effects);
}

const image::KernelEffects* Program::effects_of(std::string_view kernel) const {
  const auto found =
      std::find_if(effects_.begin(), effects_.end(), [&](const auto& known) { return known.name == kernel; });
  return found == effects_.end() ? nullptr : &*found;
}

Result<ProgramKernel*> Program::kernel(std::string_view name) {
  auto& slot = kernels_[std::string(name)];
  if (slot) return slot.get();
  const ptx::Function* function = ptx_.find_function(name);
  if (!function || !function->entry || !function->defined)
    return fail(ErrorCode::kNotFound, "the module has no kernel '%.*s'", static_cast<int>(name.size()), name.data());
  auto code = compile(ptx_, name, [this](std::string_view symbol) { return address_of(symbol); });
  if (!code) return tl::unexpected(code.error());
  slot = std::make_unique<ProgramKernel>();
  slot->program = this;
  slot->code = std::move(*code);
  const image::KernelInfo* machine_code = assembled(*slot->code);
  const uint32_t registers = machine_code ? machine_code->registers : slot->code->registers_per_thread;
  slot->registers = static_cast<uint32_t>(round_up(std::max(registers, 1u), kThreadRegisterStep));
  slot->registers_estimated = !machine_code;
  slot->allocates = ptx_.find_function("malloc") != nullptr;
  if (const image::KernelInfo* described = described_.kernel(slot->code->name)) {
    slot->effects = effects_of(name);
    slot->layout = described->parameters;
  }
  return slot.get();
}

Result<device::Variable> Program::variable(std::string_view name) const {
  std::string key(name);
  if (auto refused = refused_variables_.find(key); refused != refused_variables_.end())
    return tl::unexpected(refused->second);
  auto found = variables_.find(key);
  if (found == variables_.end()) return fail(ErrorCode::kNotFound, "the module has no variable '%s'", key.c_str());
  return found->second;
}

// What its machine code says; null where there is none.
const image::KernelInfo* Program::assembled(const CompiledKernel& code) const {
  const image::KernelInfo* described = described_.kernel(code.name);
  return described && described->registers ? described : nullptr;
}

}  // namespace heddle::software
