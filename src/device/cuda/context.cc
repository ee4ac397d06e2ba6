#include "device/cuda/context.h"

#include <thread>

namespace heddle::cuda {
namespace {

// For what is in flight when a context is closed. What takes longer ends with the process.
constexpr Duration kPatience = std::chrono::seconds(2);
// An MPS server that has just lost a client, or is starting, takes new ones a little later (HARDWARE.md, p6 retry).
constexpr Duration kRetryAfter = std::chrono::milliseconds(50);
constexpr int kRetries = 40;

bool passes_by(CUresult result) {
  return result == CUDA_ERROR_MPS_SERVER_NOT_READY || result == CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUlimit driver_limit(device::Limit limit) {
  switch (limit) {
    case device::Limit::kStackBytes:
      return CU_LIMIT_STACK_SIZE;
    case device::Limit::kHeapBytes:
      return CU_LIMIT_MALLOC_HEAP_SIZE;
    case device::Limit::kPendingLaunches:
      break;
  }
  return CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
}

// In bytes: of the window, what is for device memory.
uint64_t device_part(const device::ContextOptions& options) {
  return options.device_bytes > 0 ? options.device_bytes : options.window_bytes;
}

CUresult retain(const Driver& driver, CUcontext& context, CUdevice device) {
  CUresult result = driver.cuDevicePrimaryCtxRetain(&context, device);
  for (int i = 0; i < kRetries && passes_by(result); ++i) {
    std::this_thread::sleep_for(kRetryAfter);
    result = driver.cuDevicePrimaryCtxRetain(&context, device);
  }
  return result;
}

// Host memory of the window. Kernels and libraries may touch all of it.
bool may_touch_host(const Work& work, const Window& window) {
  if (const auto* copy = std::get_if<CopyWork>(&work))
    return window.on_host(copy->shape.to.address) || window.on_host(copy->shape.from.address);
  if (const auto* fill = std::get_if<FillWork>(&work)) return window.on_host(fill->shape.to.address);
  return std::holds_alternative<LaunchWork>(work) || std::holds_alternative<LibraryWork>(work);
}

}  // namespace

Result<std::unique_ptr<CudaContext>> CudaContext::open(const device::ContextOptions& options) {
  LiftedHold hold(options.window_base, device_part(options));
  const auto driver = Driver::load();
  if (!driver) return tl::unexpected(driver.error());
  std::unique_ptr<CudaContext> context(new CudaContext(*driver));
  HEDDLE_TRY(context->build(options, hold));
  return context;
}

Status CudaContext::build(const device::ContextOptions& options, LiftedHold& hold) {
  HEDDLE_TRY(driver_.check(driver_.cuDeviceGet(&device_, static_cast<int>(options.ordinal)), "cuDeviceGet"));
  HEDDLE_TRY(driver_.check(retain(driver_, context_, device_), "cuDevicePrimaryCtxRetain"));
  HEDDLE_TRY(driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"));
  arch_ = options.model.capability_major * 10 + options.model.capability_minor;
  auto range = AddressRange::reserve(driver_, hold);
  if (!range) return tl::unexpected(range.error());
  const Window::Shape shape{options.window_base, options.window_bytes, device_part(options)};
  window_ = std::make_unique<Window>(driver_, shape, device_, std::move(*range));
  auto engine = Engine::start(driver_, context_, *window_, options.print);
  if (!engine) return tl::unexpected(engine.error());
  engine_ = std::move(*engine);
  return {};
}

CudaContext::~CudaContext() {
  if (!context_) return;
  driver_.cuCtxSetCurrent(context_);
  const bool faulted = engine_ && engine_->faulted();
  if (engine_ && !faulted && !engine_->drain(kPatience)) {
    // A kernel that does not end can only be ended with its process: nothing may be taken away from it.
    engine_->abandon();
    window_->abandon();
    for (auto& program : programs_) (void)program.release();
    (void)engine_.release();
    (void)window_.release();
    return;
  }
  engine_.reset();
  programs_.clear();
  window_.reset();
  // The last one to release it destroys it, and a fault with it.
  driver_.cuDevicePrimaryCtxRelease(device_);
}

Status CudaContext::map(uint64_t address, Bytes size, const Fd& memory, bool host) {
  engine_->make_current();
  HEDDLE_TRY(window_->map(address, size, memory, host));
  // A kernel that runs may be told of it, by memory that it has already.
  if (!host || !engine_->computes()) return {};
  Status registered = driver_.check(window_->register_mapped(), "cuMemHostRegister");
  if (!registered) (void)window_->unmap(address, size);
  return registered;
}

Status CudaContext::unmap(uint64_t address, Bytes size) {
  engine_->make_current();
  return engine_->unmap(address, size);
}

void CudaContext::unpin(uint64_t address) {
  engine_->make_current();
  window_->unpin(address);
}

Result<device::Module*> CudaContext::load(std::span<const std::byte> fatbin) {
  engine_->make_current();
  auto program = Program::load(driver_, fatbin, arch_);
  if (!program) return tl::unexpected(program.error());
  programs_.push_back(std::move(*program));
  return programs_.back().get();
}

Result<device::Kernel*> CudaContext::kernel(device::Module& module, std::string_view name) {
  engine_->make_current();
  auto found = static_cast<Program&>(module).kernel(std::string(name));
  if (!found) return tl::unexpected(found.error());
  return *found;
}

Result<device::Variable> CudaContext::variable(device::Module& module, std::string_view name) {
  engine_->make_current();
  return static_cast<Program&>(module).variable(std::string(name));
}

Status CudaContext::set_texture(uint64_t handle, const Texture& texture) {
  return engine_->set_texture(handle, texture);
}

Status CudaContext::remove_texture(uint64_t handle) {
  return engine_->remove_texture(handle);
}

Status CudaContext::set_limit(device::Limit limit, uint64_t bytes) {
  engine_->make_current();
  return driver_.check(driver_.cuCtxSetLimit(driver_limit(limit), bytes), "cuCtxSetLimit");
}

Result<uint32_t> CudaContext::open_library(library::Library library) {
  engine_->make_current();
  return engine_->open_library(library);
}

Status CudaContext::create_stream(device::StreamIndex index, bool non_blocking, int priority) {
  engine_->make_current();
  return engine_->create_stream(index, non_blocking, priority);
}

Status CudaContext::destroy_stream(device::StreamIndex index) {
  return engine_->destroy_stream(index);
}

// Before the engine's lock: registering takes its time, and what is done meanwhile is to be noticed.
Status CudaContext::submit(device::StreamIndex stream, device::Tag tag, Work work) {
  engine_->make_current();
  if (window_->has_unregistered() && may_touch_host(work, *window_) && !engine_->faulted()) {
    const CUresult result = window_->register_mapped();
    if (is_sticky(result))
      engine_->fail(result);
    else
      HEDDLE_TRY(driver_.check(result, "cuMemHostRegister"));
  }
  return engine_->submit(stream, tag, std::move(work));
}

Status CudaContext::launch(device::StreamIndex stream, device::Kernel& kernel, const device::LaunchConfig& config,
                           device::Tag tag) {
  return submit(stream, tag, LaunchWork{static_cast<LoadedKernel*>(&kernel), config, {}});
}

Status CudaContext::copy(device::StreamIndex stream, device::CopyDirection direction, const device::CopyShape& shape,
                         device::Tag tag) {
  const auto bytes = payload("copy", shape.width, shape.height, shape.depth);
  if (!bytes) return tl::unexpected(bytes.error());
  return submit(stream, tag, CopyWork{direction, shape, *bytes});
}

Status CudaContext::fill(device::StreamIndex stream, const device::FillShape& shape, device::Tag tag) {
  if (shape.element_bytes != 1 && shape.element_bytes != 2 && shape.element_bytes != 4)
    return fail(ErrorCode::kInvalidArgument, "fill with elements of %u bytes: 1, 2 and 4 are possible",
                shape.element_bytes);
  const auto bytes = payload("fill", shape.width, shape.height, shape.depth);
  if (!bytes) return tl::unexpected(bytes.error());
  return submit(stream, tag, FillWork{shape, *bytes});
}

Status CudaContext::call(device::StreamIndex stream, const library::Call& call, device::Tag tag) {
  return submit(stream, tag, LibraryWork{call.library, call.function, {call.words.begin(), call.words.end()}});
}

Status CudaContext::mark(device::StreamIndex stream, device::Tag tag) {
  return submit(stream, tag, MarkWork{});
}

Status CudaContext::wait(device::StreamIndex stream, device::Tag awaited, device::Tag tag) {
  return submit(stream, tag, WaitWork{awaited});
}

Status CudaContext::hold(device::StreamIndex stream, device::Tag tag) {
  return submit(stream, tag, HoldWork{});
}

Status CudaContext::release(device::Tag tag) {
  engine_->make_current();
  return engine_->release(tag);
}

bool CudaContext::flush() {
  engine_->make_current();
  return engine_->flush();
}

void CudaContext::fence() {
  engine_->make_current();
  engine_->fence();
}

// Where the memory cannot be pinned, or the device cannot write there in stream order, completions alone tell.
void CudaContext::report_to(device::ProgressWords words, Bytes size) {
  engine_->make_current();
  int can_write = 0;
  driver_.cuDeviceGetAttribute(&can_write, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device_);
  window_->pin_later(words.first & ~uint64_t{4095}, Bytes{size.value + (words.first & 4095)});
  if (can_write != 0 && window_->pinned(words.first, size.value)) engine_->report_to(words);
}

size_t CudaContext::completions(std::span<device::Completion> out, Duration timeout) {
  return engine_->completions(out, timeout);
}

void CudaContext::wake() {
  engine_->wake();
}

}  // namespace heddle::cuda
