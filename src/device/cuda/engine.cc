#include "device/cuda/engine.h"

#include <algorithm>
#include <tuple>

#include "core/clock.h"

namespace heddle::cuda {
namespace {

constexpr uint64_t kMostUnfenced = 64;

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(const Driver& driver, CUcontext context, Window& window,
                                              device::PrintSink print) {
  std::unique_ptr<Engine> engine(new Engine(driver, context, window, std::move(print)));
  HEDDLE_TRY(engine->begin());
  return engine;
}

Engine::Engine(const Driver& driver, CUcontext context, Window& window, device::PrintSink print)
    : driver_(driver),
      context_(context),
      window_(window),
      id_(next_id()),
      staging_(driver),
      textures_(driver, window),
      capture_(std::move(print)),
      clock_(driver) {}

Status Engine::begin() {
  CUstream& stream = streams_.legacy().handle;
  HEDDLE_TRY(driver_.check(driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
                           "cuStreamCreateWithPriority"));
  return clock_.start(stream);
}

Engine::~Engine() {
  for (const auto& stream : streams_.all()) {
    for (const Fence& fence : stream->fences) clock_.give_back(fence.event);
    if (stream->handle) driver_.cuStreamDestroy(stream->handle);
  }
}

void Engine::abandon() {
  std::lock_guard lock(mutex_);
  for (const auto& stream : streams_.all()) {
    stream->handle = nullptr;
    stream->fences.clear();
    for (Operation& operation : stream->pending) (void)operation.staged.release();
  }
  staging_.abandon();
  textures_.abandon();
  clock_.abandon();
}

void Engine::make_current() const {
  thread_local uint64_t current = 0;
  if (current == id_) return;
  driver_.cuCtxSetCurrent(context_);
  current = id_;
}

bool Engine::faulted() {
  std::lock_guard lock(mutex_);
  return fault_ != 0;
}

Status Engine::unmap(uint64_t address, Bytes size) {
  {
    std::lock_guard lock(mutex_);
    textures_.unmapped(address, size.value);
  }
  return window_.unmap(address, size);
}

Status Engine::set_texture(uint64_t handle, const Texture& texture) {
  std::lock_guard lock(mutex_);
  return textures_.set(handle, texture);
}

void Engine::set_room(Bytes room) {
  std::lock_guard lock(mutex_);
  textures_.set_room(room);
}

Status Engine::remove_texture(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return textures_.remove(handle);
}

Status Engine::create_stream(device::StreamIndex index, bool non_blocking, int priority) {
  std::lock_guard lock(mutex_);
  HEDDLE_TRY(streams_.check_new(index));
  CUstream handle = nullptr;
  // After a fault the driver makes no more; what is handed over completes all the same.
  if (!fault_)
    HEDDLE_TRY(driver_.check(driver_.cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, priority),
                             "cuStreamCreateWithPriority"));
  streams_.create(index, non_blocking, handle);
  return {};
}

Status Engine::destroy_stream(device::StreamIndex index) {
  std::lock_guard lock(mutex_);
  return streams_.destroy(index);
}

// ---- Handing over ----

Status Engine::submit(device::StreamIndex index, device::Tag tag, Work work) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(index);
  if (!found) return tl::unexpected(found.error());
  Stream& stream = **found;
  Operation operation;
  operation.tag = tag;
  operation.sequence = ++last_sequence_;
  const TimePoint at = operation.issued = last_activity_ = MonotonicClock().now();
  Status status;
  if (fault_) {
    complete(stream, std::move(operation), at, at, fault_, {});
  } else if (streams_.blocked(stream, operation.sequence, work)) {
    if (auto* launch = std::get_if<LaunchWork>(&work)) launch->own();
    streams_.defer(stream, {std::move(operation), std::move(work)});
  } else {
    status = issue(stream, std::move(operation), work);
  }
  announce();
  return status;
}

void Engine::announce() {
  handed_over_.fetch_add(1, std::memory_order_relaxed);
  if (sleeping_) changed_.notify_one();
}

Status Engine::release(device::Tag hold) {
  std::lock_guard lock(mutex_);
  if (fault_) return {};  // nothing is held any more
  Stream* stream = streams_.held_at(hold);
  if (!stream)
    return heddle::fail(ErrorCode::kNotFound, "no stream is held at tag %llu", static_cast<unsigned long long>(hold));
  streams_.let_go(*stream);
  last_activity_ = MonotonicClock().now();
  Status status = issue_unblocked();
  announce();
  return status;
}

Result<uint32_t> Engine::open_library(library::Library library) {
  std::lock_guard lock(mutex_);
  return libraries_.open(library);
}

// Behind a fence that is still outstanding, the next one is recorded when it has been passed: a program that launches
// ever again, slower than this hands over, pays for a fence as often as the device gets to one.
void Engine::flush() {
  std::lock_guard lock(mutex_);
  if (fault_ || in_flight_ == 0) return;
  for (const auto& stream : streams_.all()) {
    if (stream->unfenced == 0) continue;
    stream->flushed = true;
    if (!stream->fences.empty()) continue;
    if (const CUresult result = fence(*stream, true); result != CUDA_SUCCESS) return fault(result, {});
  }
  announce();
}

// What the driver refuses only now has been handed over long ago: it completes, as a fault.
Status Engine::issue_unblocked() {
  Stream* stream = nullptr;
  Deferred deferred;
  while (!fault_ && streams_.take_unblocked(stream, deferred)) {
    const device::Tag tag = deferred.operation.tag;
    const TimePoint issued = deferred.operation.issued;
    const uint64_t sequence = deferred.operation.sequence;
    const Status status = issue(*stream, std::move(deferred.operation), deferred.work);
    if (status) continue;
    Operation refused;
    refused.tag = tag;
    refused.sequence = sequence;
    refused.issued = issued;
    refused.problem = std::make_unique<std::string>(status.error().text);
    HEDDLE_TRY(append(*stream, std::move(refused), CUDA_SUCCESS, "", true));
  }
  return {};
}

Status Engine::issue(Stream& stream, Operation operation, Work& work) {
  const bool only_a_mark = std::holds_alternative<MarkWork>(work) || std::holds_alternative<HoldWork>(work);
  const CUresult ordered = only_a_mark && streams_.has_turn(stream) ? CUDA_SUCCESS : keep_legacy_order(stream);
  if (ordered != CUDA_SUCCESS) return append(stream, std::move(operation), ordered, "cuStreamWaitEvent", false);
  return std::visit([&](auto& each) { return issue_work(stream, std::move(operation), each); }, work);
}

Status Engine::issue_work(Stream& stream, Operation operation, LaunchWork& work) {
  LoadedKernel& kernel = *work.kernel;
  const device::LaunchConfig& config = work.config;
  operation.kernel = &kernel;
  operation.computes = true;
  if (config.parameters.size() < kernel.parameter_bytes)
    return heddle::fail(ErrorCode::kInvalidArgument, "launch of '%s': %zu bytes of parameters, it takes %zu",
                        kernel.name.c_str(), config.parameters.size(), kernel.parameter_bytes);
  arguments_.clear();
  for (const size_t offset : kernel.offsets)
    arguments_.push_back(const_cast<std::byte*>(config.parameters.data() + offset));
  HEDDLE_TRY(textures_.prepare(stream.handle));
  CUresult result = allow_shared(kernel, config.dynamic_shared_bytes);
  const auto& [grid, block] = std::tie(config.grid, config.block);
  if (kernel.prints && result == CUDA_SUCCESS) {
    capture_.launched();
    ++printing_;
  }
  if (result == CUDA_SUCCESS && config.cooperative) {
    result = driver_.cuLaunchCooperativeKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                               config.dynamic_shared_bytes, stream.handle, arguments_.data());
  } else if (result == CUDA_SUCCESS) {
    result = driver_.cuLaunchKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                    config.dynamic_shared_bytes, stream.handle, arguments_.data(), nullptr);
  }
  if (result == CUDA_SUCCESS && kernel.writes_surfaces) result = textures_.surfaces_written(stream.handle);
  if (result == CUDA_SUCCESS || is_sticky(result)) return append(stream, std::move(operation), result, "launch", false);
  if (kernel.prints && printing_ > 0) {
    --printing_;
    capture_.finished(1);
  }
  return append(stream, std::move(operation), result, ("launch of '" + kernel.name + "'").c_str(), false);
}

// Kernels may use more dynamic shared memory than by default only where that was said before.
CUresult Engine::allow_shared(LoadedKernel& kernel, uint32_t bytes) {
  if (bytes <= kernel.dynamic_shared) return CUDA_SUCCESS;
  const CUresult result = driver_.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                     static_cast<int>(bytes));
  if (result == CUDA_SUCCESS) kernel.dynamic_shared = bytes;
  return result;
}

Status Engine::issue_work(Stream& stream, Operation operation, CopyWork& work) {
  using device::CopyDirection;
  const auto& [to, from, width, height, depth] = work.shape;
  if (work.bytes == 0) {
    MarkWork mark;
    return issue_work(stream, std::move(operation), mark);
  }
  const auto accessible = [this](uint64_t address, uint64_t bytes) { return window_.accessible(address, bytes); };
  auto problem = check_rows("copy", to, width, height, depth, accessible);
  if (!problem) problem = check_rows("copy", from, width, height, depth, accessible);
  if (problem) {
    operation.problem = std::make_unique<std::string>(std::move(*problem));
    return append(stream, std::move(operation), CUDA_SUCCESS, "", true);
  }
  const device::CopyEnd& host = work.direction == CopyDirection::kToDevice ? from : to;
  const bool direct =
      work.direction == CopyDirection::kOnDevice ||
      (work.direction != CopyDirection::kOnHost && window_.pinned(host.address, extent(host, width, height, depth)));
  if (direct) {
    const CUresult result = followed(stream, enqueue_copy(driver_, stream.handle, work.direction, work.shape), to,
                                     extent(to, width, height, depth));
    return append(stream, std::move(operation), result, "copy", true);
  }
  auto staged = std::make_unique<StagedCopy>();
  if (work.direction != CopyDirection::kOnHost) {
    const auto buffer = staging_.take(work.bytes);
    if (!buffer) return tl::unexpected(buffer.error());
    staged->buffer = *buffer;
  }
  const CUresult result = followed(stream, enqueue_staged(driver_, stream.handle, work.direction, work.shape, *staged),
                                   to, extent(to, width, height, depth));
  operation.staged = std::move(staged);
  return append(stream, std::move(operation), result, "copy", true);
}

Status Engine::issue_work(Stream& stream, Operation operation, FillWork& work) {
  const device::FillShape& shape = work.shape;
  if (work.bytes == 0) {
    MarkWork mark;
    return issue_work(stream, std::move(operation), mark);
  }
  const auto accessible = [this](uint64_t address, uint64_t bytes) { return window_.accessible(address, bytes); };
  if (auto problem = check_rows("fill", shape.to, shape.width, shape.height, shape.depth, accessible)) {
    operation.problem = std::make_unique<std::string>(std::move(*problem));
    return append(stream, std::move(operation), CUDA_SUCCESS, "", true);
  }
  const CUresult result = followed(stream, enqueue_fill(driver_, stream.handle, shape), shape.to,
                                   extent(shape.to, shape.width, shape.height, shape.depth));
  return append(stream, std::move(operation), result, "fill", false);
}

// What was written goes on into the images of arrays.
CUresult Engine::followed(const Stream& stream, CUresult result, const device::CopyEnd& to, uint64_t bytes) {
  return result == CUDA_SUCCESS ? textures_.written(stream.handle, to.address, bytes) : result;
}

// What the library refuses, without the device having failed, is a fault all the same: the program was told that the
// call was well.
Status Engine::issue_work(Stream& stream, Operation operation, LibraryWork& work) {
  const auto host = Libraries::written_on_host(work.call());
  const Status called = host && !window_.pinned(host->address, host->bytes)
                            ? heddle::fail(ErrorCode::kInvalidArgument, "cuRAND: no pinned memory of the program")
                            : libraries_.call(work.call(), stream.index, stream.handle);
  if (!called) operation.problem = std::make_unique<std::string>(called.error().text);
  operation.computes = true;
  return append(stream, std::move(operation), CUDA_SUCCESS, "", !called);
}

// A mark on an idle stream has completed before this returns.
Status Engine::issue_work(Stream& stream, Operation operation, MarkWork&) {
  if (!streams_.has_turn(stream)) return append(stream, std::move(operation), CUDA_SUCCESS, "", true);
  const TimePoint at = operation.issued;
  complete(stream, std::move(operation), at, at, 0, {});
  return {};
}

Status Engine::issue_work(Stream& stream, Operation operation, HoldWork&) {
  streams_.hold(stream, operation);
  MarkWork mark;
  return issue_work(stream, std::move(operation), mark);
}

Status Engine::issue_work(Stream& stream, Operation operation, WaitWork& work) {
  const auto [other, awaited] = streams_.issued(work.awaited);
  if (!other || other == &stream) {
    MarkWork mark;
    return issue_work(stream, std::move(operation), mark);
  }
  // The first fence that covers it; without one it is covered now, with whatever followed it.
  const auto covers = [sequence = awaited->sequence](const Fence& each) { return each.sequence >= sequence; };
  auto found = std::find_if(other->fences.begin(), other->fences.end(), covers);
  CUresult result = CUDA_SUCCESS;
  if (found == other->fences.end() && (result = fence(*other, false)) == CUDA_SUCCESS)
    found = std::prev(other->fences.end());
  if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(stream.handle, found->event, CU_EVENT_WAIT_DEFAULT);
  return append(stream, std::move(operation), result, "cuStreamWaitEvent", false);
}

// Takes what was issued into the books; or refuses it, where the driver did; or fails everything, where that is lost.
Status Engine::append(Stream& stream, Operation operation, CUresult result, const char* what, bool urgent) {
  if (result != CUDA_SUCCESS && !is_sticky(result)) {
    if (operation.staged) (void)operation.staged.release();  // half of it may be on its way
    return driver_.check(result, what);
  }
  stream.tail = operation.sequence;
  operation.computes = operation.computes && result == CUDA_SUCCESS;
  stream.pending.push_back(std::move(operation));
  ++stream.unfenced;
  ++in_flight_;
  if (result == CUDA_SUCCESS && (urgent || stream.unfenced >= kMostUnfenced)) result = fence(stream, urgent);
  if (result != CUDA_SUCCESS) fault(result, {});
  return {};
}

CUresult Engine::fence(Stream& stream, bool urgent) {
  const CUevent event = clock_.take();
  if (!event) return CUDA_ERROR_UNKNOWN;
  const CUresult result = driver_.cuEventRecord(event, stream.handle);
  if (result != CUDA_SUCCESS) {
    clock_.give_back(event);
    return is_sticky(result) ? result : CUDA_ERROR_UNKNOWN;
  }
  stream.fences.push_back({event, stream.tail, urgent});
  stream.unfenced = 0;
  stream.flushed = false;
  if (urgent) urgent_.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

// CUDA's legacy default stream: its operations follow what all blocking streams were given before, and those follow it.
CUresult Engine::keep_legacy_order(Stream& stream) {
  if (stream.non_blocking) return CUDA_SUCCESS;
  Stream& legacy = streams_.legacy();
  if (!stream.legacy()) return follow(stream, legacy, stream.legacy_seen);
  for (const auto& other : streams_.all()) {
    if (other->non_blocking || other->legacy()) continue;
    if (const CUresult result = follow(legacy, *other, other->followed); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Makes `stream` wait for what `other` has been given, unless it does already.
CUresult Engine::follow(Stream& stream, Stream& other, uint64_t& seen) {
  if (other.pending.empty() || seen >= other.tail) return CUDA_SUCCESS;
  if (other.fences.empty() || other.fences.back().sequence < other.tail) {
    if (const CUresult result = fence(other, false); result != CUDA_SUCCESS) return result;
  }
  seen = other.tail;
  return driver_.cuStreamWaitEvent(stream.handle, other.fences.back().event, CU_EVENT_WAIT_DEFAULT);
}

}  // namespace heddle::cuda
