#include "device/cuda/engine.h"

#include <algorithm>

#include "core/clock.h"
#include "core/lock_soon.h"

namespace heddle::cuda {
namespace {

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(const Driver& driver, CUcontext context, Window& window,
                                              device::PrintSink print) {
  std::unique_ptr<Engine> engine(new Engine(driver, context, window, std::move(print)));
  HEDDLE_TRY(engine->in_flight_.begin());
  return engine;
}

Engine::Engine(const Driver& driver, CUcontext context, Window& window, device::PrintSink print)
    : driver_(driver),
      context_(context),
      window_(window),
      id_(next_id()),
      in_flight_(driver, std::move(print)),
      textures_(driver, window),
      submission_(driver, window, in_flight_, textures_, libraries_) {}

void Engine::abandon() {
  std::lock_guard lock(mutex_);
  in_flight_.abandon();
  textures_.abandon();
}

void Engine::make_current() const {
  thread_local uint64_t current = 0;
  if (current == id_) return;
  driver_.cuCtxSetCurrent(context_);
  current = id_;
}

bool Engine::faulted() {
  std::lock_guard lock(mutex_);
  return in_flight_.faulted();
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
  HEDDLE_TRY(in_flight_.streams().check_new(index));
  CUstream handle = nullptr;
  // After a fault the driver makes no more; what is handed over completes all the same.
  if (!in_flight_.faulted())
    HEDDLE_TRY(driver_.check(driver_.cuStreamCreateWithPriority(&handle, CU_STREAM_NON_BLOCKING, priority),
                             "cuStreamCreateWithPriority"));
  in_flight_.streams().create(index, non_blocking, handle);
  return {};
}

Status Engine::destroy_stream(device::StreamIndex index) {
  std::lock_guard lock(mutex_);
  return in_flight_.streams().destroy(index);
}

Status Engine::submit(device::StreamIndex index, device::Tag tag, Work work) {
  const auto lock = locked_soon(mutex_);
  const auto found = in_flight_.streams().find(index);
  if (!found) return tl::unexpected(found.error());
  Status status = submission_.submit(**found, in_flight_.begin_operation(tag), std::move(work));
  settled_.store(false, std::memory_order_relaxed);
  announce();
  return status;
}

// There is more to do for the thread that takes completions.
void Engine::announce() {
  handed_over_.fetch_add(1, std::memory_order_relaxed);
  if (sleeping_) changed_.notify_one();
}

Status Engine::release(device::Tag hold) {
  std::lock_guard lock(mutex_);
  if (in_flight_.faulted()) return {};  // nothing is held any more
  Stream* stream = in_flight_.streams().held_at(hold);
  if (!stream)
    return heddle::fail(ErrorCode::kNotFound, "no stream is held at tag %llu", static_cast<unsigned long long>(hold));
  in_flight_.streams().let_go(*stream);
  in_flight_.touch(MonotonicClock().now());
  Status status = submission_.issue_unblocked();
  announce();
  return status;
}

Result<uint32_t> Engine::open_library(library::Library library) {
  std::lock_guard lock(mutex_);
  return libraries_.open(library);
}

bool Engine::computes() {
  std::lock_guard lock(mutex_);
  const auto& streams = in_flight_.streams().all();
  return in_flight_.computing() ||
         std::any_of(streams.begin(), streams.end(), [](const auto& stream) { return !stream->deferred.empty(); });
}

void Engine::fail(CUresult sticky) {
  std::lock_guard lock(mutex_);
  in_flight_.fail_all(sticky);
  announce();
}

bool Engine::flush() {
  std::lock_guard lock(mutex_);
  settled_.store(true, std::memory_order_relaxed);
  if (in_flight_.faulted() || in_flight_.empty()) return true;
  if (const CUresult result = flush_streams(); result != CUDA_SUCCESS) in_flight_.fail_all(result);
  announce();
  const auto& streams = in_flight_.streams().all();
  return std::all_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->unfenced == 0; });
}

void Engine::fence() {
  std::lock_guard lock(mutex_);
  settled_.store(true, std::memory_order_relaxed);
  if (in_flight_.faulted()) return;
  for (const auto& stream : in_flight_.streams().all()) {
    if (stream->unfenced == 0) continue;
    if (const CUresult result = in_flight_.fence(*stream, true); result != CUDA_SUCCESS)
      return in_flight_.fail_all(result);
  }
  announce();
}

void Engine::report_to(device::ProgressWords words) {
  std::lock_guard lock(mutex_);
  in_flight_.report_to(words);
}

void Engine::reports(bool on) {
  std::lock_guard lock(mutex_);
  in_flight_.reports(on);
}

// Behind a fence that is still outstanding, the next one is recorded when it has been passed: a program that launches
// ever again, slower than this hands over, pays for a fence as often as the device gets to one.
CUresult Engine::flush_streams() {
  for (const auto& stream : in_flight_.streams().all()) {
    if (stream->unfenced == 0) continue;
    stream->flushed = true;
    if (!stream->fences.empty()) continue;
    if (const CUresult result = in_flight_.fence(*stream, true); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace heddle::cuda
