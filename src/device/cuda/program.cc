#include "device/cuda/program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "image/fatbin.h"

namespace heddle::cuda {
namespace {

// So many kernels of a module are loaded with it.
constexpr unsigned kFewKernels = 64;

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

// Machine code runs on devices of its major version from its own minor version on.
bool runs_machine_code(const image::Image& image, uint32_t arch) {
  if (image.scope == image::ArchScope::kExact) return image.arch == arch;
  return image.arch / 10 == arch / 10 && image.arch <= arch;
}

// Kernels that launch kernels call cudadevrt by these names, of CUDA 12 and before it.
bool launches_kernels(const std::vector<const image::Image*>& units) {
  return std::any_of(units.begin(), units.end(), [](const image::Image* unit) {
    return unit->bytes.find("__cudaCDP2LaunchDevice") != std::string::npos ||
           unit->bytes.find("cudaLaunchDevice") != std::string::npos;
  });
}

// The driver's linker, with what it says.
struct Linker {
  explicit Linker(const Driver& with) : driver(with) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
    created = driver.cuLinkCreate(2, options, values, &state);
  }
  ~Linker() {
    if (created == CUDA_SUCCESS) driver.cuLinkDestroy(state);
  }
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  const Driver& driver;
  std::array<char, 1024> log{};
  CUlinkState state = nullptr;
  CUresult created = CUDA_SUCCESS;
};

}  // namespace

Result<std::unique_ptr<Program>> Program::load(const Driver& driver, std::span<const std::byte> fatbin, uint32_t arch) {
  const auto fatbins = image::split_fatbins(fatbin);  // several where the program was compiled separately
  if (!fatbins) return tl::unexpected(fatbins.error());
  const auto images = image::read_fatbins(*fatbins);
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
  std::string tried;
  // Linked machine code has the toolkit's way to set conditions of graphs, and these are none of the driver's here.
  const bool conditions = image::calls_device_runtime(images);
  const CUresult machine_code = conditions ? CUDA_ERROR_NO_BINARY_FOR_GPU : load_machine_code(images, arch, tried);
  if (machine_code == CUDA_SUCCESS) return {};
  const auto ptx = image::choose_ptx_units(images, arch);
  auto loaded = ptx ? load_ptx(*ptx) : Status(tl::unexpected(ptx.error()));
  if (loaded) return {};
  if (conditions)
    return fail(loaded.error().code,
                "the program's kernels set conditions of CUDA graphs, for which heddle needs their PTX: %s",
                loaded.error().text.c_str());
  if (tried.empty()) return loaded;
  const Status refused = driver_.check(machine_code, "cuModuleLoadData");
  return fail(refused.error().code, "of its %s machine code: %s; and %s", tried.c_str(), refused.error().text.c_str(),
              loaded.error().text.c_str());
}

// The newest that the device runs, which its own would be; in `tried`, what the driver refused, with its first answer.
CUresult Program::load_machine_code(const std::vector<image::Image>& images, uint32_t arch, std::string& tried) {
  std::vector<const image::Image*> candidates;
  for (const image::Image& each : images) {
    if (each.kind == image::ImageKind::kCubin && !each.relocatable && runs_machine_code(each, arch))
      candidates.push_back(&each);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const image::Image* a, const image::Image* b) { return a->arch > b->arch; });
  CUresult first = CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (const image::Image* each : candidates) {
    const CUresult result = load_bytes(std::as_bytes(std::span(each->bytes)));
    if (result == CUDA_SUCCESS) return result;
    if (tried.empty()) first = result;
    tried += (tried.empty() ? "" : ", ") + image::arch_name(*each);
  }
  return first;
}

Status Program::load_ptx(const std::vector<const image::Image*>& units) {
  if (units.size() > 1) return load_linked(units);
  return driver_.check(load_bytes(std::as_bytes(std::span(units.front()->bytes))), "cuModuleLoadData");
}

// What the units refer to and none of them defines can only be the device runtime, which comes with the toolkit.
Status Program::load_linked(const std::vector<const image::Image*>& units) {
  const Linker linker(driver_);
  HEDDLE_TRY(driver_.check(linker.created, "cuLinkCreate"));
  CUresult result = CUDA_SUCCESS;
  for (const image::Image* unit : units) {
    std::string text = unit->bytes;  // with a zero behind it
    result = driver_.cuLinkAddData(linker.state, CU_JIT_INPUT_PTX, text.data(), text.size() + 1,
                                   stringf("unit %u", unit->unit).c_str(), 0, nullptr, nullptr);
    if (result != CUDA_SUCCESS) break;
  }
  void* linked = nullptr;
  size_t bytes = 0;
  if (result == CUDA_SUCCESS) result = driver_.cuLinkComplete(linker.state, &linked, &bytes);
  if (result == CUDA_SUCCESS)
    return driver_.check(load_bytes({static_cast<const std::byte*>(linked), bytes}), "cuModuleLoadData");
  if (launches_kernels(units))
    return fail(ErrorCode::kNotSupported,
                "the program's kernels launch kernels (dynamic parallelism): its PTX alone cannot be linked with the "
                "device runtime; rebuild with machine code for this GPU (-gencode arch=compute_90,code=sm_90)");
  return fail(ErrorCode::kNotFound, "the program's %zu separately compiled units do not link: %s%s%s", units.size(),
              driver_.text(result).c_str(), linker.log[0] ? ": " : "", linker.log.data());
}

// Aligned, and followed by a zero: the driver decides by its first bytes what it reads.
CUresult Program::load_bytes(std::span<const std::byte> bytes) {
  std::vector<uint64_t> copy(bytes.size() / sizeof(uint64_t) + 2);
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  const CUresult result = driver_.cuModuleLoadData(&module_, copy.data());
  if (result == CUDA_SUCCESS) load_few();
  return result;
}

// Loading a kernel may wait for kernels that run, and so for ever where these wait for the one to be loaded, as of two
// streams (seen on an H100). What is wrong with one is said where it is called.
void Program::load_few() {
  unsigned count = 0;
  if (driver_.cuModuleGetFunctionCount(&count, module_) != CUDA_SUCCESS || count > kFewKernels) return;
  std::vector<CUfunction> kernels(count);
  if (driver_.cuModuleEnumerateFunctions(kernels.data(), count, module_) != CUDA_SUCCESS) return;
  for (const CUfunction kernel : kernels) driver_.cuFuncLoad(kernel);
}

Program::~Program() {
  if (module_) driver_.cuModuleUnload(module_);
}

// Of a module with many kernels one is loaded when it is called first, as natively (CUDA_MODULE_LOADING=LAZY): most
// programs call few of them, and all take time and device memory. Ahead of the launch, so that what is wrong with it is
// said of it by name.
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
