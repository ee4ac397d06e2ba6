#include "image/image.h"

#include <algorithm>
#include <unordered_set>

#include "image/device_runtime.h"
#include "image/elf_view.h"
#include "image/no_throw.h"
#include "image/ptx_cursor.h"

namespace heddle::image {
namespace {

bool runs_on(const Image& image, uint32_t arch) {
  if (image.arch > arch) return false;
  switch (image.scope) {
    case ArchScope::kPortable:
      return true;
    case ArchScope::kFamily:
      return image.arch / 10 == arch / 10;
    case ArchScope::kExact:
      return image.arch == arch;
  }
  return false;
}

const Image* best_ptx(std::span<const Image> images, uint32_t unit, uint32_t max_arch) {
  const Image* best = nullptr;
  for (const Image& image : images) {
    if (image.unit != unit || image.kind != ImageKind::kPtx || !runs_on(image, max_arch)) continue;
    if (!best || image.arch > best->arch) best = &image;
  }
  return best;
}

// "sm_75, sm_80", or "" where there is none of that kind.
std::string archs_of(std::span<const Image> images, ImageKind kind) {
  std::vector<std::string> names;
  for (const Image& image : images) {
    if (image.kind == kind) names.push_back(arch_name(image));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

tl::unexpected<Error> no_ptx(std::span<const Image> images, uint32_t max_arch) {
  // PTX for the oldest architecture in sight would serve this device and every one that the program aimed at.
  uint32_t oldest = max_arch;
  for (const Image& image : images) oldest = std::min(oldest, image.arch);
  const std::string advice = stringf("rebuild with -gencode arch=compute_%u,code=compute_%u", oldest, oldest);

  if (const std::string ptx = archs_of(images, ImageKind::kPtx); !ptx.empty()) {
    return fail(ErrorCode::kNotFound,
                "the program lacks PTX for a device that executes up to compute_%u (it has %s): %s", max_arch,
                ptx.c_str(), advice.c_str());
  }
  const std::string cubins = archs_of(images, ImageKind::kCubin);
  if (cubins.empty())
    return fail(ErrorCode::kNotFound, "the program carries no PTX and no machine code: %s", advice.c_str());
  return fail(ErrorCode::kNotFound, "the program carries no PTX (only %s machine code): %s", cubins.c_str(),
              advice.c_str());
}

// A unit that holds nothing but a linked cubin is the linker's output over the other units.
bool is_link_result(std::span<const Image> images, uint32_t unit) {
  return std::all_of(images.begin(), images.end(), [unit](const Image& image) {
    return image.unit != unit || (image.kind == ImageKind::kCubin && !image.relocatable);
  });
}

// What a unit's machine code defines, by name, but for what heddle has itself; nothing where it has none that reads.
std::unordered_set<std::string> defined_in(std::span<const Image> images, uint32_t unit) {
  std::unordered_set<std::string> names;
  for (const Image& image : images) {
    if (image.unit != unit || !image.relocatable) continue;
    const auto elf = ElfView::open(image.bytes);
    if (!elf) return {};
    for (const ElfView::Symbol& symbol : elf->symbols()) {
      const bool code_or_data = symbol.type == STT_FUNC || symbol.type == STT_OBJECT;
      if (code_or_data && elf->section(symbol.section) && !in_device_runtime(symbol.name)) names.emplace(symbol.name);
    }
  }
  return names;
}

// Whether machine code calls a function of heddle's device runtime: it is named there, and not defined.
bool leaves_to_device_runtime(std::string_view cubin) {
  const auto elf = ElfView::open(cubin);
  if (!elf) return false;
  const auto symbols = elf->symbols();
  return std::any_of(symbols.begin(), symbols.end(), [&](const ElfView::Symbol& symbol) {
    return in_device_runtime(symbol.name) && symbol.section == SHN_UNDEF;
  });
}

bool names_any(std::string_view ptx, const std::unordered_set<std::string>& names) {
  PtxCursor cursor(ptx);
  for (auto token = cursor.next(); !token.empty(); token = cursor.next()) {
    if (names.count(std::string(token)) > 0) return true;
  }
  return false;
}

// Where nvlink has no machine code to link (nvcc -rdc=true -arch=compute_80), it registers every unit of the libraries
// too: cudadevrt's, which dynamic parallelism needs, in any such program.
bool is_unused(std::span<const Image> images, uint32_t unit, std::span<const Image* const> others) {
  const auto names = defined_in(images, unit);
  return !names.empty() &&
         std::none_of(others.begin(), others.end(), [&](const Image* ptx) { return names_any(ptx->bytes, names); });
}

// Kernels that launch kernels call cudadevrt by these names, of CUDA 12 and before it.
bool launches_from_device(std::span<const Image* const> units) {
  return std::any_of(units.begin(), units.end(), [](const Image* ptx) {
    return ptx->bytes.find("__cudaCDP2LaunchDevice") != std::string_view::npos ||
           ptx->bytes.find("cudaLaunchDevice") != std::string_view::npos;
  });
}

}  // namespace

std::string arch_name(const Image& image) {
  const char* suffix = image.scope == ArchScope::kExact ? "a" : image.scope == ArchScope::kFamily ? "f" : "";
  return stringf("%s_%u%s", image.kind == ImageKind::kPtx ? "compute" : "sm", image.arch, suffix);
}

bool calls_device_runtime(std::span<const Image> images) {
  return std::any_of(images.begin(), images.end(), [](const Image& image) {
    if (image.kind == ImageKind::kPtx) return names_device_runtime(image.bytes);
    return image.relocatable && leaves_to_device_runtime(image.bytes);
  });
}

const Image& device_runtime_unit() {
  static const auto* const unit = new Image{.arch = 52, .bytes = std::string(device_runtime_ptx())};
  return *unit;
}

Result<std::vector<const Image*>> choose_ptx_units(std::span<const Image> images, uint32_t max_arch) {
  return no_throw([&]() -> Result<std::vector<const Image*>> {
    std::vector<uint32_t> units;
    for (const Image& image : images) units.push_back(image.unit);
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());

    std::vector<const Image*> chosen;
    std::vector<uint32_t> without;
    for (uint32_t unit : units) {
      if (const Image* ptx = best_ptx(images, unit, max_arch)) {
        chosen.push_back(ptx);
      } else if (!is_link_result(images, unit)) {
        without.push_back(unit);
      }
    }
    const bool enough = !chosen.empty() && std::all_of(without.begin(), without.end(),
                                                       [&](uint32_t unit) { return is_unused(images, unit, chosen); });
    if (!enough && launches_from_device(chosen))
      return fail(ErrorCode::kNotSupported,
                  "the program's kernels launch kernels (dynamic parallelism), which takes machine code for the device "
                  "with the device runtime linked in, and software devices do not do");
    if (!enough) return no_ptx(images, max_arch);
    if (std::any_of(chosen.begin(), chosen.end(), [](const Image* ptx) { return names_device_runtime(ptx->bytes); }))
      chosen.push_back(&device_runtime_unit());
    return chosen;
  });
}

Result<const Image*> choose_ptx(std::span<const Image> images, uint32_t max_arch) {
  auto units = choose_ptx_units(images, max_arch);
  if (!units) return tl::unexpected(std::move(units).error());
  if (units->size() > 1) {
    return no_throw([&]() -> Result<const Image*> {
      return fail(ErrorCode::kNotSupported,
                  "the program has %zu separately compiled units (nvcc -rdc=true) and one was expected", units->size());
    });
  }
  return units->front();
}

}  // namespace heddle::image
