#include "image/describe.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "image/no_throw.h"

namespace heddle::image {
namespace {

// The newest architecture up to `arch` for which there is PTX, else the oldest beyond it: a description serves even
// where execution would not. Nothing (0) where there is no PTX.
uint32_t nearest_ptx_arch(std::span<const Image> images, uint32_t arch) {
  uint32_t below = 0, above = 0;
  for (const Image& image : images) {
    if (image.kind != ImageKind::kPtx) continue;
    if (image.arch <= arch) below = std::max(below, image.arch);
    if (image.arch > arch && (above == 0 || image.arch < above)) above = image.arch;
  }
  return below ? below : above;
}

// One text a unit; none where there is no PTX, or not of all units.
std::vector<std::string_view> ptx_texts(std::span<const Image> images, uint32_t arch) {
  std::vector<std::string_view> texts;
  if (const auto chosen = choose_ptx_units(images, nearest_ptx_arch(images, arch))) {
    for (const Image* image : *chosen) texts.push_back(image->bytes);
  }
  return texts;
}

// The linked machine code of the architecture nearest to `arch`, or null.
const Image* nearest_cubin(std::span<const Image> images, uint32_t arch) {
  const auto distance = [arch](const Image& image) {
    return image.arch > arch ? image.arch - arch : arch - image.arch;
  };
  const Image* nearest = nullptr;
  for (const Image& image : images) {
    if (image.kind != ImageKind::kCubin || image.relocatable) continue;
    if (!nearest || distance(image) < distance(*nearest)) nearest = &image;
  }
  return nearest;
}

// Adds to what PTX declares what only an assembler knows, and what PTX for another architecture may leave out.
void merge(ModuleInfo& module, ModuleInfo&& assembled) {
  std::unordered_map<std::string, size_t> kernels;
  for (size_t i = 0; i < module.kernels.size(); ++i) kernels.emplace(module.kernels[i].name, i);
  for (KernelInfo& kernel : assembled.kernels) {
    const auto known = kernels.find(kernel.name);
    if (known == kernels.end()) {
      module.kernels.push_back(std::move(kernel));
      continue;
    }
    KernelInfo& declared = module.kernels[known->second];
    declared.registers = kernel.registers;
    declared.local_bytes = kernel.local_bytes;
    declared.static_shared = std::max(declared.static_shared, kernel.static_shared);
  }

  std::unordered_set<std::string> variables;
  for (const VariableInfo& variable : module.variables) variables.insert(variable.name);
  for (VariableInfo& variable : assembled.variables) {
    if (variables.insert(variable.name).second) module.variables.push_back(std::move(variable));
  }
}

Result<ModuleInfo> describe_chosen(const std::vector<std::string_view>& texts, const Image* cubin) {
  if (texts.empty()) return describe_cubin(cubin->bytes);
  auto module = describe_ptx_units(texts);
  if (!cubin) return module;
  auto assembled = describe_cubin(cubin->bytes);
  // One of the two is enough: PTX may be newer than what is known here while its machine code reads well.
  if (!assembled) return module;
  if (!module) return assembled;
  merge(*module, std::move(*assembled));
  return module;
}

}  // namespace

Result<ModuleInfo> describe(std::span<const Image> images, uint32_t arch) {
  return no_throw([&]() -> Result<ModuleInfo> {
    const std::vector<std::string_view> texts = ptx_texts(images, arch);
    const Image* cubin = nearest_cubin(images, arch);
    if (texts.empty() && !cubin) {
      return fail(ErrorCode::kNotFound, "the program carries neither PTX nor linked machine code (%zu images)",
                  images.size());
    }
    auto module = describe_chosen(texts, cubin);
    if (module) module->arch = texts.empty() ? cubin->arch : nearest_ptx_arch(images, arch);
    return module;
  });
}

}  // namespace heddle::image
