// The part of Engine that finds out what is done.

#include <sys/prctl.h>

#include <algorithm>
#include <set>
#include <thread>
#include <tuple>

#include "core/clock.h"
#include "core/cuda_error.h"
#include "device/cuda/engine.h"

namespace heddle::cuda {
namespace {

constexpr size_t kMostSuspects = 4;
// How long the thread that takes completions stays awake for more work, and for work that runs.
constexpr Duration kIdleSpin = std::chrono::microseconds(50), kBusySpin = std::chrono::microseconds(100);
// Between two looks while it is awake: at what somebody waits for, and at the rest.
constexpr Duration kUrgentLook = std::chrono::nanoseconds(500), kLook = std::chrono::microseconds(20);
// Asleep, between two looks: a 16th of the time that has passed without news, within these.
constexpr Duration kShortestNap = std::chrono::microseconds(5), kLongestNap = std::chrono::microseconds(50);
// An operation that nobody waits for gets a fence of its own after so long.
constexpr Duration kUnfencedAge = std::chrono::microseconds(100);

TimePoint now() {
  return MonotonicClock().now();
}

// Naps are shorter than what the kernel rounds sleeps up to by default.
void sleep_precisely() {
  thread_local bool precise = false;
  if (!std::exchange(precise, true)) ::prctl(PR_SET_TIMERSLACK, 1000);
}

}  // namespace

size_t Engine::completions(std::span<device::Completion> out, Duration timeout) {
  make_current();
  std::unique_lock lock(mutex_);
  const TimePoint deadline = timeout < Duration::zero() ? TimePoint::max() : now() + timeout;
  for (;;) {
    if (in_flight_ > 0 && done_.empty()) look(lock);
    if (!done_.empty()) return take(out);
    if (std::exchange(woken_, false)) {
      wanted_.store(false, std::memory_order_relaxed);
      return 0;
    }
    if (now() >= deadline) return 0;
    rest(lock, deadline);
  }
}

size_t Engine::take(std::span<device::Completion> out) {
  const size_t count = std::min(out.size(), done_.size());
  std::move(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count), out.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void Engine::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  wanted_.store(true, std::memory_order_relaxed);
  changed_.notify_one();
}

// Fences are taken away by this thread alone, but for a fault, after which nothing is looked at any more: so the driver
// is asked without the lock.
void Engine::look(std::unique_lock<std::mutex>& lock) {
  if (look_at_heads(lock)) look_at_all(lock);
  if (!fault_) complete_found();
  if (!fault_) fence_old();
  for (const CUstream handle : streams_.sweep()) {
    if (handle) driver_.cuStreamDestroy(handle);
  }
}

// The oldest fence of each stream. Whether there is news.
bool Engine::look_at_heads(std::unique_lock<std::mutex>& lock) {
  looks_.clear();
  for (const auto& stream : streams_.all()) {
    if (!stream->fences.empty()) looks_.push_back({stream.get(), stream->fences.front(), CUDA_ERROR_NOT_READY, {}});
  }
  lock.unlock();
  bool news = false;
  for (Look& each : looks_) {
    each.result = driver_.cuEventQuery(each.fence.event);
    news = news || each.result != CUDA_ERROR_NOT_READY;
  }
  lock.lock();
  if (!news) looks_.clear();
  return news;
}

// All that is done. What a stream waited for in another is found done with it, because that one is asked again.
void Engine::look_at_all(std::unique_lock<std::mutex>& lock) {
  looks_.clear();
  for (const auto& stream : streams_.all()) {
    for (const Fence& fence : stream->fences) looks_.push_back({stream.get(), fence, CUDA_ERROR_NOT_READY, {}});
  }
  const bool prints = printing_ > 0;
  lock.unlock();
  const Stream* unfinished = nullptr;
  TimePoint last{};
  for (size_t i = 0; i < looks_.size(); ++i) {
    Look& each = looks_[i];
    if (each.stream == unfinished) continue;
    if (i == 0 || looks_[i - 1].stream != each.stream) last = {};
    if (!ask(each, prints)) unfinished = each.stream;
    last = each.ended = std::max(last, each.ended);
  }
  lock.lock();
}

bool Engine::ask(Look& look, bool prints) {
  look.result = driver_.cuEventQuery(look.fence.event);
  if (look.result != CUDA_SUCCESS) return false;
  // Makes the driver write out what was printed.
  if (prints) driver_.cuEventSynchronize(look.fence.event);
  look.ended = clock_.time_of(look.fence.event);
  return true;
}

// Completes what was found done, in the order in which it happened, over all streams; then a fault fails the rest.
void Engine::complete_found() {
  CUresult failed = CUDA_SUCCESS;
  for (const Look& each : looks_) {
    if (each.result != CUDA_SUCCESS && each.result != CUDA_ERROR_NOT_READY) failed = each.result;
  }
  std::erase_if(looks_, [](const Look& each) { return each.result != CUDA_SUCCESS; });
  std::sort(looks_.begin(), looks_.end(), [](const Look& a, const Look& b) {
    return std::tie(a.ended, a.fence.sequence) < std::tie(b.ended, b.fence.sequence);
  });
  for (const Look& each : looks_) {
    if (!fault_) pass(*each.stream, each);
  }
  if (failed != CUDA_SUCCESS && !fault_) fault(failed, {});
}

// Everything up to the fence is done. The time since the one before is shared out among its operations.
void Engine::pass(Stream& stream, const Look& passed) {
  last_activity_ = now();
  const TimePoint done = std::min(passed.ended, last_activity_);
  const Fence fence = stream.fences.front();
  stream.fences.pop_front();
  clock_.give_back(passed.fence.event);
  if (fence.urgent) urgent_.fetch_sub(1, std::memory_order_relaxed);
  const auto behind = std::find_if(stream.pending.begin(), stream.pending.end(),
                                   [&](const Operation& each) { return each.sequence > fence.sequence; });
  const auto count = behind - stream.pending.begin();
  if (count == 0) return;
  const TimePoint began = std::min(done, std::max(stream.last_end, stream.pending.front().issued));
  const Duration share = (done - began) / count;
  uint64_t printed = 0;
  for (ptrdiff_t i = 0; i < count; ++i) {
    if (auto& front = stream.pending.front(); front.problem) {
      const std::string problem = std::move(*front.problem);
      return fault(kCudaIllegalAddress, problem);
    }
    Operation operation = std::move(stream.pending.front());
    stream.pending.pop_front();
    --in_flight_;
    printed += operation.kernel && operation.kernel->prints;
    if (operation.staged && operation.staged->buffer.data) staging_.give_back(operation.staged->buffer);
    const TimePoint ended = i + 1 == count ? done : began + (i + 1) * share;
    complete(stream, std::move(operation), began + i * share, ended, 0, {});
  }
  stream.last_end = done;
  printing_ -= std::min(printed, printing_);
  capture_.finished(printed);
}

// What is wanted, or runs for some time, without a fence gets one, so that it is found done.
void Engine::fence_old() {
  const TimePoint at = now();
  for (const auto& stream : streams_.all()) {
    if (stream->unfenced == 0 || !stream->fences.empty() || stream->pending.empty()) continue;
    if (!stream->flushed && at - stream->pending.front().issued < kUnfencedAge) continue;
    const CUresult result = fence(*stream, stream->flushed);
    if (result != CUDA_SUCCESS) return fault(result, {});
  }
}

void Engine::complete(Stream& stream, Operation operation, TimePoint started, TimePoint ended, uint32_t cuda_error,
                      std::string text) {
  const bool failed = cuda_error != 0;
  done_.push_back(
      {operation.tag, cuda_error, std::move(text), started, ended, 0, failed && device_lost_, failed && bystander_});
  stream.last_end = std::max(stream.last_end, ended);
}

void Engine::fault(CUresult result, std::string text) {
  if (text.empty()) text = suspects() + driver_.text(result);
  if (fault_ == 0) {
    device_lost_ = true;
    bystander_ = !computing();
  }
  fault(static_cast<uint32_t>(result), std::move(text));
}

bool Engine::computing() const {
  const auto& streams = streams_.all();
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
    return std::any_of(stream->pending.begin(), stream->pending.end(),
                       [](const Operation& operation) { return operation.computes; });
  });
}

// The operations of a stream complete in their order; the first one to complete tells what happened.
void Engine::fault(uint32_t cuda_error, std::string text) {
  if (std::exchange(fault_, cuda_error) != 0) return;
  last_activity_ = now();
  capture_.finished(std::exchange(printing_, 0));
  for (const auto& stream : streams_.all()) fail(*stream, text);
  urgent_.store(0, std::memory_order_relaxed);
  in_flight_ = 0;
  announce();
}

void Engine::fail(Stream& stream, std::string& text) {
  const TimePoint at = now();
  streams_.let_go(stream);
  // Their events are not destroyed before the engine: somebody may be asking for them just now.
  for (const Fence& fence : stream.fences) clock_.give_back(fence.event);
  stream.fences.clear();
  for (Operation& operation : stream.pending) {
    (void)operation.staged.release();  // the driver may still write there
    complete(stream, std::move(operation), at, at, fault_, std::exchange(text, {}));
  }
  stream.pending.clear();
  for (Deferred& deferred : stream.deferred)
    complete(stream, std::move(deferred.operation), at, at, fault_, std::exchange(text, {}));
  stream.deferred.clear();
}

// The driver does not say which kernel it was: one of those that had not been seen done.
std::string Engine::suspects() const {
  std::set<std::string> names;
  for (const auto& stream : streams_.all()) {
    for (const Operation& operation : stream->pending) {
      if (operation.kernel) names.insert(operation.kernel->name);
    }
  }
  if (names.empty()) return {};
  std::string text = names.size() == 1 ? "kernel " : "one of the kernels ";
  size_t named = 0;
  for (const std::string& name : names) {
    if (named++ == kMostSuspects) break;
    text += (named == 1 ? "'" : ", '") + name + "'";
  }
  return text + (names.size() > kMostSuspects ? " and others: " : ": ");
}

// ---- Waiting ----

void Engine::rest(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  const TimePoint at = now();
  const Duration quiet = at - last_activity_;
  if (in_flight_ == 0 && quiet >= kIdleSpin) {
    sleeping_ = true;
    if (deadline == TimePoint::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, deadline - at);
    }
    sleeping_ = false;
    return;
  }
  const bool busy = in_flight_ > 0;
  lock.unlock();
  if (!busy) {
    spin(std::min(kIdleSpin - quiet, deadline - at), true);
  } else if (quiet < kBusySpin) {
    spin(std::min(urgent_.load(std::memory_order_relaxed) > 0 ? kUrgentLook : kLook, deadline - at), false);
  } else {
    sleep_precisely();
    std::this_thread::sleep_for(std::min(std::clamp(quiet / 16, kShortestNap, kLongestNap), deadline - at));
  }
  lock.lock();
}

// Ends early when somebody waits for something new; or, where that is wanted, when there is more work of any kind.
void Engine::spin(Duration most, bool until_more) const {
  const uint64_t handed_over = handed_over_.load(std::memory_order_relaxed);
  const uint32_t urgent = urgent_.load(std::memory_order_relaxed);
  const TimePoint end = now() + most;
  while (now() < end) {
    if (wanted_.load(std::memory_order_relaxed) || urgent_.load(std::memory_order_relaxed) > urgent) return;
    if (until_more && handed_over_.load(std::memory_order_relaxed) != handed_over) return;
    for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
  }
}

bool Engine::drain(Duration patience) {
  make_current();
  const TimePoint deadline = now() + patience;
  std::unique_lock lock(mutex_);
  while (in_flight_ > 0 && now() < deadline) {
    look(lock);
    if (in_flight_ > 0) rest(lock, deadline);
  }
  return in_flight_ == 0;
}

}  // namespace heddle::cuda
