#include "worker/write_set.h"

#include <algorithm>

#include "image/parameter_words.h"
#include "library/cublas.h"

namespace heddle::worker {
namespace {

struct Access {
  bool read = false, written = false, overwritten = false;
};

// Once for each part of a region.
void note(RecordEffects& effects, Region region, uint64_t begin, uint64_t end, Access access) {
  for (Touched& known : effects.touched) {
    if (known.region != region || known.begin != begin || known.end != end) continue;
    known.read |= access.read;
    known.written |= access.written;
    known.overwritten |= access.overwritten;
    return;
  }
  effects.touched.push_back({region, begin, end, access.read, access.written, access.overwritten});
}

// [address, address + bytes) of whatever lies there; what is not mapped (the bulk area) is no concern of ours.
void note_range(RecordEffects& effects, uint64_t address, uint64_t bytes, Access access, const Regions& regions) {
  const uint64_t end = address + bytes;
  while (address < end) {
    const auto* found = regions.map().find(address);
    if (!found) return;
    const uint64_t until = std::min(end, found->end());
    note(effects, found->value, address - found->address, until - found->address, access);
    address = until;
  }
}

bool is_dense(const device::CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth) {
  return (height <= 1 || end.pitch == width) && (depth <= 1 || end.slice == width * height);
}

// From the first to behind the last byte of a box, which validation has found not to overflow.
uint64_t extent(const device::CopyEnd& end, uint64_t width, uint64_t height, uint64_t depth) {
  return (depth - 1) * end.slice + (height - 1) * end.pitch + width;
}

void note_everything(RecordEffects& effects, bool read, bool written, const Regions& regions) {
  effects.reads_everything |= read;
  effects.writes_everything |= written;
  if ((read || written) && regions.any_host()) effects.unmovable = Unmovable::kHostMemory;
}

// cuBLAS computes in memory that is none of its operands, and adds by atomics where it may.
void note_setting(RecordEffects& effects, const library::Call& call, const Regions& regions) {
  if (call.library != library::Library::kCublas) return;
  const auto setting = library::cublas::Setting::unpack(call.words);
  if (setting && setting->atomics) effects.same_values = false;
  if (setting) note_range(effects, setting->workspace, setting->workspace_bytes, {.written = true}, regions);
}

}  // namespace

bool Regions::add(uint64_t address, uint64_t bytes, Region region) {
  if (!map_.add(address, bytes, region)) return false;
  if (region.kind == Region::Kind::kHost) ++hosts_;
  return true;
}

bool Regions::remove(uint64_t address) {
  const auto* found = map_.find(address);
  if (!found || found->address != address) return false;
  if (found->value.kind == Region::Kind::kHost) --hosts_;
  return map_.remove(address);
}

const char* text_of(Unmovable reason) {
  switch (reason) {
    case Unmovable::kHostMemory:
      return "its kernels reach pinned or managed memory";
    case Unmovable::kDeviceMalloc:
      return "its kernels allocate memory themselves";
    case Unmovable::kModuleAddress:
      return "its kernels have stored the address of a variable or a function";
  }
  return "?";
}

bool repeats_exactly(const RecordEffects& effects) {
  const auto reads_host = [](const Touched& part) { return part.read && part.region.kind == Region::Kind::kHost; };
  return effects.same_bytes && effects.same_values &&
         std::none_of(effects.touched.begin(), effects.touched.end(), reads_host);
}

KernelUse use_of(uint32_t module, const image::ModuleInfo& info, const image::KernelInfo& kernel,
                 std::span<const image::KernelEffects> all) {
  KernelUse use;
  use.parameters = kernel.parameters;
  use.module = module;
  const auto effects =
      std::find_if(all.begin(), all.end(), [&](const image::KernelEffects& each) { return each.name == kernel.name; });
  if (effects == all.end()) return use;
  for (const image::VariableUse& named : effects->variables) {
    const auto found = std::find_if(info.variables.begin(), info.variables.end(),
                                    [&](const image::VariableInfo& each) { return each.name == named.name; });
    if (found == info.variables.end()) return use;  // who knows where it lies: nothing is known of the kernel
    use.variables.push_back(
        {static_cast<uint32_t>(found - info.variables.begin()), named.read, named.written, found->managed});
  }
  use.effects = &*effects;
  return use;
}

RecordEffects effects_of_launch(const KernelUse& kernel, std::span<const std::byte> parameters,
                                const Regions& regions) {
  RecordEffects effects;
  const image::KernelEffects* known = kernel.effects;
  effects.bytes_by_content = true;
  effects.same_bytes = known && known->is_repeatable();
  effects.same_values = effects.same_bytes && !known->unordered;
  note_everything(effects, !known || known->may_read_anything(), !known || known->writes_anything, regions);
  if (!known) return effects;
  effects.touched.reserve(kernel.parameters.size());
  if (known->keeps_module_addresses) effects.unmovable = Unmovable::kModuleAddress;
  if (known->allocates) effects.unmovable = Unmovable::kDeviceMalloc;
  image::each_parameter_word(kernel.parameters, *known, parameters, [&](const image::ParameterWord& word) {
    regions.each_meant_by(word.value, [&](Region region, uint64_t begin, uint64_t end) {
      note(effects, region, begin, end, {word.read, word.written});
      if (region.kind == Region::Kind::kHost) effects.unmovable = Unmovable::kHostMemory;
    });
  });
  for (const KernelUse::Variable& variable : kernel.variables) {
    // Its size does not matter: variables are saved and restored whole.
    if (variable.managed) effects.unmovable = Unmovable::kHostMemory;
    note(effects, {Region::Kind::kVariable, variable.index, kernel.module}, 0, 0, {variable.read, variable.written});
  }
  return effects;
}

RecordEffects effects_of_copy(const CheckedCopy& copy, const Regions& regions) {
  RecordEffects effects;
  if (copy.bytes == 0) return effects;
  const device::CopyShape& box = copy.shape;
  note_range(effects, box.from.address, extent(box.from, box.width, box.height, box.depth), {.read = true}, regions);
  const bool dense = is_dense(box.to, box.width, box.height, box.depth);
  note_range(effects, box.to.address, extent(box.to, box.width, box.height, box.depth),
             {.written = true, .overwritten = dense}, regions);
  return effects;
}

RecordEffects effects_of_fill(const CheckedFill& fill, const Regions& regions) {
  RecordEffects effects;
  if (fill.bytes == 0) return effects;
  const device::FillShape& box = fill.shape;
  const bool dense = is_dense(box.to, box.width, box.height, box.depth);
  note_range(effects, box.to.address, extent(box.to, box.width, box.height, box.depth),
             {.written = true, .overwritten = dense}, regions);
  return effects;
}

// Operands that are written are read, too: C of a product where beta is not 0.
RecordEffects effects_of_call(const library::Call& call, const Regions& regions) {
  RecordEffects effects;
  const auto demand = library::demand(call);
  if (!demand) {
    effects.same_bytes = effects.same_values = false;
    note_everything(effects, true, true, regions);
    return effects;
  }
  note_setting(effects, call, regions);
  const bool draws = call.library == library::Library::kCurand;
  for (const library::Operand& operand : demand->operands) {
    if (operand.pointers != 0) {
      note_range(effects, operand.address, operand.pointers * sizeof(uint64_t), {.read = true}, regions);
      note_everything(effects, true, operand.written, regions);
      continue;
    }
    const Access access{.read = !operand.written || !draws, .written = operand.written};
    note_range(effects, operand.address, operand.bytes, access, regions);
    const auto* found = regions.map().find(operand.address);
    if (found && found->value.kind == Region::Kind::kHost) effects.unmovable = Unmovable::kHostMemory;
  }
  return effects;
}

}  // namespace heddle::worker
