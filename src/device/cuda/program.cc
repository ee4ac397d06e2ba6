#include "device/cuda/program.h"

#include <algorithm>
#include <cstring>

#include "image/fatbin.h"

namespace heddle::cuda {
namespace {

// Device printf calls vprintf of the driver's device library: the name stands in PTX and in the symbols of a cubin.
bool may_print(const std::vector<image::Image>& images) {
  return std::any_of(images.begin(), images.end(),
                     [](const image::Image& each) { return each.bytes.find("vprintf") != std::string::npos; });
}

// Stores and reductions of PTX; what machine code does is not known.
bool may_write_surfaces(const std::vector<image::Image>& images) {
  bool readable = false;
  for (const image::Image& each : images) {
    if (each.kind != image::ImageKind::kPtx) continue;
    readable = true;
    if (each.bytes.find("sust.") != std::string::npos || each.bytes.find("sured.") != std::string::npos) return true;
  }
  return !readable;
}

}  // namespace

Result<std::unique_ptr<Program>> Program::load(const Driver& driver, std::span<const std::byte> fatbin, uint32_t arch) {
  const auto images = image::read_fatbin(fatbin);
  if (!images) return tl::unexpected(images.error());
  std::unique_ptr<Program> program(new Program(driver));
  program->prints_ = may_print(*images);
  program->writes_surfaces_ = may_write_surfaces(*images);
  HEDDLE_TRY(program->load(*images, arch));
  return program;
}

// The image is chosen here, and only it goes to the driver: given a container with a field that it does not expect, the
// driver reads beyond its end (seen with 580.159).
Status Program::load(const std::vector<image::Image>& images, uint32_t arch) {
  for (const image::Image& each : images) {
    if (each.kind == image::ImageKind::kCubin && each.arch == arch && !each.relocatable &&
        load_bytes(std::as_bytes(std::span(each.bytes))) == CUDA_SUCCESS)
      return {};
  }
  const auto ptx = image::choose_ptx(images, arch);
  if (!ptx) return tl::unexpected(ptx.error());
  return driver_.check(load_bytes(std::as_bytes(std::span((*ptx)->bytes))), "cuModuleLoadData");
}

// Aligned, and followed by a zero: the driver decides by its first bytes what it reads.
CUresult Program::load_bytes(std::span<const std::byte> bytes) {
  std::vector<uint64_t> copy(bytes.size() / sizeof(uint64_t) + 2);
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  return driver_.cuModuleLoadData(&module_, copy.data());
}

Program::~Program() {
  if (module_) driver_.cuModuleUnload(module_);
}

// A kernel is loaded when it is called first, as natively (CUDA_MODULE_LOADING=LAZY): most programs call few of those
// that their modules have, and all of them take time and device memory. Ahead of the launch, so that what is wrong with
// it is said of it by name. It may wait for kernels that run.
Result<LoadedKernel*> Program::kernel(const std::string& name) {
  if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second.get();
  const std::string what = "kernel '" + name + "'";
  auto kernel = std::make_unique<LoadedKernel>();
  kernel->name = name;
  kernel->prints = prints_;
  kernel->writes_surfaces = writes_surfaces_;
  HEDDLE_TRY(driver_.check(driver_.cuModuleGetFunction(&kernel->function, module_, name.c_str()), what.c_str()));
  HEDDLE_TRY(driver_.check(driver_.cuFuncLoad(kernel->function), what.c_str()));
  HEDDLE_TRY(read_parameters(*kernel));
  return (kernels_[name] = std::move(kernel)).get();
}

Status Program::read_parameters(LoadedKernel& kernel) const {
  for (size_t index = 0;; ++index) {
    size_t offset = 0, size = 0;
    const CUresult result = driver_.cuFuncGetParamInfo(kernel.function, index, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) return {};  // there are no more
    HEDDLE_TRY(driver_.check(result, "cuFuncGetParamInfo"));
    kernel.offsets.push_back(offset);
    kernel.parameter_bytes = std::max(kernel.parameter_bytes, offset + size);
  }
}

Result<device::Variable> Program::variable(const std::string& name) const {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  HEDDLE_TRY(driver_.check(driver_.cuModuleGetGlobal(&address, &bytes, module_, name.c_str()),
                           ("variable '" + name + "'").c_str()));
  return device::Variable{address, bytes};
}

}  // namespace heddle::cuda
