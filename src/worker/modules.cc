#include "worker/modules.h"

#include <algorithm>
#include <cstring>

#include "core/clock.h"
#include "core/log.h"

namespace heddle::worker {
namespace {

// FNV-1a, a word at a time.
constexpr uint64_t kDigestStart = 0xcbf29ce484222325, kDigestFactor = 0x100000001b3;

// A fat binary that is larger is given up with its load, and nothing is known of its kernels.
constexpr size_t kMostRead = 16 * kMiB;

KernelTraits traits_of(const image::KernelEffects& effects, bool module_allocates) {
  const bool unknown = !effects.unknown.empty();
  KernelTraits traits;
  traits.allocates = module_allocates && (unknown || effects.allocates);
  traits.writes_variables =
      unknown || effects.writes_anything ||
      std::any_of(effects.variables.begin(), effects.variables.end(), [](const auto& use) { return use.written; });
  traits.writes_through_parameters = unknown || effects.written != 0;
  traits.tells_addresses = unknown || effects.keeps_module_addresses;
  return traits;
}

}  // namespace

class Modules::Entry {
 public:
  std::vector<std::byte> fatbin;  // given up once nothing more is to be read of it
  image::ModuleInfo info;
  device::Module* module = nullptr;
  std::vector<device::Kernel*> kernels;                    // null until used
  std::vector<KernelTraits> traits;                        // of each, once that mattered
  std::vector<image::KernelEffects> effects;               // in any order; the uses point into it
  std::vector<KernelUse> uses;                             // of each, where they are kept
  std::vector<std::optional<device::Variable>> variables;  // likewise
};

Modules::Modules(device::Context& context, ModuleReader read, uint32_t arch, bool keeps_uses, bool addresses_matter)
    : context_(context),
      read_(std::move(read)),
      arch_(arch),
      keeps_uses_(keeps_uses),
      addresses_matter_(addresses_matter) {}

Modules::~Modules() = default;

Status Modules::add(uint32_t id, const Fd& memory, Bytes size) {
  if (known(id)) return {};  // a restarted heddled says it again
  if (id != entries_.size() + 1)
    return fail(ErrorCode::kProtocol, "module %u follows module %zu: ids have no gaps", id, entries_.size());
  auto sealed = sealed_size(memory);
  if (!sealed) return tl::unexpected(std::move(sealed).error());
  if (size > *sealed)
    return fail(ErrorCode::kProtocol, "module %u of %s in %s of memory", id, to_string(size).c_str(),
                to_string(*sealed).c_str());
  auto mapping = map_shared(memory, *sealed, false);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  auto entry = std::make_unique<Entry>();
  const auto* bytes = static_cast<const std::byte*>(mapping->data());
  entry->fatbin.assign(bytes, bytes + size.value);
  entries_.push_back(std::move(entry));
  return {};
}

Checked<Modules::Entry*> Modules::loaded(uint32_t id) {
  Entry* entry = entries_[id - 1].get();
  if (entry->module) return entry;
  auto info = read_.describe(entry->fatbin, arch_);
  if (!info) return tl::unexpected(refusal_of("module", info.error()));
  auto module = context_.load(entry->fatbin);
  if (!module) return tl::unexpected(refusal_of("module", module.error()));
  entry->info = std::move(*info);
  entry->module = *module;
  entry->kernels.resize(entry->info.kernels.size());
  entry->variables.resize(entry->info.variables.size());
  if (!read_.effects || entry->fatbin.size() > kMostRead) entry->fatbin = {};
  note_loaded(id, *entry);
  logger("worker")->debug("module {}: {} kernels, {} variables", id, entry->kernels.size(), entry->variables.size());
  return entry;
}

// One that the device does not have (it was compiled away, or cannot be initialised) the program cannot have either.
void Modules::note_loaded(uint32_t id, const Entry& entry) {
  Loaded& loaded = loaded_.emplace_back(Loaded{.id = id});
  uint64_t digest = kDigestStart;
  for (uint32_t index = 0; index < entry.info.variables.size(); ++index) {
    const image::VariableInfo& info = entry.info.variables[index];
    const auto variable = context_.variable(*entry.module, info.name);
    if (!variable || variable->bytes == 0) continue;
    loaded.variables.push_back(*variable);
    loaded.indices.push_back(index);
    loaded.holds_addresses |= info.holds_addresses;
    digest = (digest ^ variable->address) * kDigestFactor;
    digest = (digest ^ variable->bytes) * kDigestFactor;
    const uint64_t bytes = round_up(variable->bytes, 16);
    variable_bytes_ += bytes;
    if (!info.constant) writable_bytes_ += bytes;
  }
  if (!loaded.variables.empty()) loaded.addresses = digest;
}

bool Modules::traits_matter(const Entry& entry) const {
  const bool has_addresses = !entry.info.variables.empty() || entry.info.functions;
  return writable_bytes_ != 0 || entry.info.allocates || keeps_uses_ || (addresses_matter_ && has_addresses);
}

void Modules::find_traits(uint32_t id, Entry& entry) const {
  entry.traits.resize(entry.info.kernels.size());
  for (KernelTraits& each : entry.traits) each = {entry.info.allocates, true, true, true};
  if (keeps_uses_) keep_uses(id, entry, {});
  if (entry.fatbin.empty()) return;
  const TimePoint begun = MonotonicClock().now();
  auto effects = read_.effects(entry.fatbin, arch_);
  entry.fatbin = {};
  if (!effects) return logger("worker")->debug("module {}: {}", id, effects.error().text);
  for (size_t index = 0; index < entry.traits.size(); ++index) {
    const auto of_it = std::find_if(effects->begin(), effects->end(), [&](const image::KernelEffects& each) {
      return each.name == entry.info.kernels[index].name;
    });
    if (of_it != effects->end()) entry.traits[index] = traits_of(*of_it, entry.info.allocates);
  }
  logger("worker")->debug("module {}: what {} kernels do with memory was read in {}", id, entry.traits.size(),
                          to_string(MonotonicClock().now() - begun));
  if (keeps_uses_) keep_uses(id, entry, std::move(*effects));
}

void Modules::keep_uses(uint32_t id, Entry& entry, std::vector<image::KernelEffects> effects) {
  entry.effects = std::move(effects);
  entry.uses.clear();
  for (const image::KernelInfo& kernel : entry.info.kernels)
    entry.uses.push_back(use_of(id, entry.info, kernel, entry.effects));
}

Checked<void> Modules::load(uint32_t id) {
  const auto entry = loaded(id);
  if (!entry) return tl::unexpected(entry.error());
  return {};
}

Checked<Modules::LaunchTarget> Modules::kernel(uint32_t id, uint32_t index) {
  const auto entry = loaded(id);
  if (!entry) return tl::unexpected(entry.error());
  auto& kernels = (*entry)->kernels;
  if (index >= kernels.size()) return malformed("module %u has no kernel %u, only %zu", id, index, kernels.size());
  const image::KernelInfo& info = (*entry)->info.kernels[index];
  if (!kernels[index]) {
    auto kernel = context_.kernel(*(*entry)->module, info.name);
    if (!kernel) return tl::unexpected(refusal_of("kernel", kernel.error()));
    kernels[index] = *kernel;
  }
  LaunchTarget target{kernels[index], &info};
  if (!traits_matter(**entry)) return target;
  if ((*entry)->traits.empty() || (keeps_uses_ && (*entry)->uses.empty())) find_traits(id, **entry);
  target.traits = (*entry)->traits[index];
  if (keeps_uses_) target.use = &(*entry)->uses[index];
  return target;
}

Checked<device::Variable> Modules::variable(uint32_t id, uint32_t index) {
  const auto entry = loaded(id);
  if (!entry) return tl::unexpected(entry.error());
  auto& variables = (*entry)->variables;
  if (index >= variables.size())
    return malformed("module %u has no variable %u, only %zu", id, index, variables.size());
  if (!variables[index]) {
    auto variable = context_.variable(*(*entry)->module, (*entry)->info.variables[index].name);
    if (!variable) return tl::unexpected(refusal_of("variable", variable.error()));
    variables[index] = *variable;
  }
  return *variables[index];
}

}  // namespace heddle::worker
