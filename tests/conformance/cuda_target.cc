#include "cuda_target.h"

#ifdef HEDDLE_HAS_CUDA

#include <cstdio>

#include "device/cuda/allocator.h"
#include "device/cuda/gpus.h"

namespace heddle::conformance {
namespace {

constexpr uint64_t kWindow = 1 * kGiB;
// heddled's own, in its order of preference.
constexpr uint64_t kBases[] = {0x20000000000, 0x200000000000, 0x7e8000000000};

class CudaTarget : public Target {
 public:
  CudaTarget(const cuda::Gpu& gpu, std::unique_ptr<cuda::Allocator> allocator)
      : gpu_(gpu), allocator_(std::move(allocator)) {}

  // The first context settles where the window is.
  Result<std::unique_ptr<device::Context>> open(device::PrintSink print) override {
    if (window_) return open_in_window(print);
    Result<std::unique_ptr<device::Context>> context = fail(ErrorCode::kLimitExceeded, "no window can be reserved");
    for (const uint64_t base : kBases) {
      auto reserved = reserve_addresses(base, Bytes{kWindow});
      if (!reserved) continue;
      window_ = std::move(*reserved);
      context = open_in_window(print);
      if (context) return context;
      std::fprintf(stderr, "window at 0x%llx: %s\n", static_cast<unsigned long long>(base),
                   context.error().text.c_str());
    }
    return context;
  }
  uint64_t window_base() const override { return reinterpret_cast<uintptr_t>(window_.data()); }
  uint64_t window_bytes() const override { return kWindow; }
  Result<Fd> allocate(Bytes size) override {
    auto memory = allocator_->allocate(size);
    HEDDLE_TRY(allocator_->finish_clearing());
    return memory;
  }
  const DeviceModel& model() const override { return gpu_.model; }

  bool ends_kernels() const override { return false; }
  bool isolates_contexts() const override { return false; }
  bool reaches_host_memory() const override { return gpu_.reaches_host_memory; }

 private:
  Result<std::unique_ptr<device::Context>> open_in_window(const device::PrintSink& print) {
    device::ContextOptions options;
    options.model = gpu_.model;
    options.window_base = window_base();
    options.window_bytes = window_bytes();
    options.print = print;
    return device::open_cuda_context(options);
  }

  cuda::Gpu gpu_;
  std::unique_ptr<cuda::Allocator> allocator_;
  Mapping window_;
};

}  // namespace

std::unique_ptr<Target> cuda_target() {
  const auto driver = cuda::Driver::load();
  const auto gpus = driver ? cuda::list_gpus(*driver) : tl::unexpected(driver.error());
  if (!gpus) {
    std::fprintf(stderr, "%s\n", gpus.error().text.c_str());
    return nullptr;
  }
  auto allocator = cuda::Allocator::open(gpus->front().ordinal);
  if (!allocator) {
    std::fprintf(stderr, "%s\n", allocator.error().text.c_str());
    return nullptr;
  }
  return std::make_unique<CudaTarget>(gpus->front(), std::move(*allocator));
}

}  // namespace heddle::conformance

#else

namespace heddle::conformance {

std::unique_ptr<Target> cuda_target() {
  return nullptr;
}

}  // namespace heddle::conformance

#endif
