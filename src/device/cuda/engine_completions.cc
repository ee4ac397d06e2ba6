// The part of Engine that finds out what is done.

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "core/clock.h"
#include "core/lock_soon.h"
#include "device/cuda/engine.h"

namespace heddle::cuda {
namespace {

// How long the thread that takes completions stays awake for more work, and for work that runs.
constexpr Duration kIdleSpin = std::chrono::microseconds(50), kBusySpin = std::chrono::microseconds(100);
// Between two looks while it is awake. A look takes the driver's lock, and keeps whoever is launching meanwhile from
// it: so what somebody waits for is looked at often only while nothing more is to be handed over.
constexpr Duration kLook = std::chrono::microseconds(100);
// Asleep, between two looks: a 16th of the time that has passed without news, within these.
constexpr Duration kShortestNap = std::chrono::microseconds(5), kLongestNap = std::chrono::microseconds(50);

TimePoint now() {
  return MonotonicClock().now();
}

void relax() {
  for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
}

// Naps are shorter than what the kernel rounds sleeps up to by default.
void sleep_precisely() {
  thread_local bool precise = false;
  if (!std::exchange(precise, true)) ::prctl(PR_SET_TIMERSLACK, 1000);
}

}  // namespace

size_t Engine::completions(std::span<device::Completion> out, Duration timeout) {
  make_current();
  auto lock = locked_soon(mutex_);
  const TimePoint deadline = timeout < Duration::zero() ? TimePoint::max() : now() + timeout;
  for (;;) {
    if (!in_flight_.empty() && !in_flight_.anything_done()) look(lock);
    if (in_flight_.anything_done()) {
      if (looker_) looker_->found();
      looker_.reset();
      return in_flight_.take(out);
    }
    if (std::exchange(woken_, false)) {
      wanted_.store(false, std::memory_order_relaxed);
      return 0;
    }
    if (now() >= deadline) return 0;
    rest(lock, deadline);
  }
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
  if (!in_flight_.faulted()) in_flight_.complete_found(looks_);
  if (!in_flight_.faulted()) in_flight_.fence_old();
  for (const CUstream handle : in_flight_.streams().sweep()) {
    if (handle) driver_.cuStreamDestroy(handle);
  }
}

// The oldest fence of each stream. Whether there is news.
bool Engine::look_at_heads(std::unique_lock<std::mutex>& lock) {
  looks_.clear();
  for (const auto& stream : in_flight_.streams().all()) {
    if (!stream->fences.empty()) looks_.push_back({stream.get(), stream->fences.front(), CUDA_ERROR_NOT_READY, {}});
  }
  lock.unlock();
  bool news = false;
  for (Look& each : looks_) {
    each.result = driver_.cuEventQuery(each.fence.event);
    news = news || each.result != CUDA_ERROR_NOT_READY;
  }
  lock_soon(lock);
  if (!news) looks_.clear();
  return news;
}

// All that is done. What a stream waited for in another is found done with it, because that one is asked again.
void Engine::look_at_all(std::unique_lock<std::mutex>& lock) {
  looks_.clear();
  for (const auto& stream : in_flight_.streams().all()) {
    for (const Fence& fence : stream->fences) looks_.push_back({stream.get(), fence, CUDA_ERROR_NOT_READY, {}});
  }
  const bool prints = in_flight_.prints();
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
  lock_soon(lock);
}

bool Engine::ask(Look& look, bool prints) {
  look.result = driver_.cuEventQuery(look.fence.event);
  if (look.result != CUDA_SUCCESS) return false;
  // Makes the driver write out what was printed.
  if (prints) driver_.cuEventSynchronize(look.fence.event);
  look.ended = in_flight_.clock().time_of(look.fence.event);
  return true;
}

// ---- Waiting ----

void Engine::rest(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  const TimePoint at = now();
  const Duration quiet = at - in_flight_.last_activity();
  if (in_flight_.empty() && quiet >= kIdleSpin) {
    sleeping_ = true;
    if (deadline == TimePoint::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, deadline - at);
    }
    sleeping_ = false;
    return;
  }
  const bool busy = !in_flight_.empty();
  lock.unlock();
  if (!busy) {
    spin_idle(std::min(kIdleSpin - quiet, deadline - at));
  } else if (quiet < kBusySpin || looks_for_awaited()) {
    spin_busy(std::min(kLook, deadline - at));
  } else {
    sleep_precisely();
    std::this_thread::sleep_for(std::min(std::clamp(quiet / 16, kShortestNap, kLongestNap), deadline - at));
  }
  lock_soon(lock);
}

// What was handed over or done last is no news any more, and somebody waits.
bool Engine::looks_for_awaited() {
  if (!is_awaited()) return false;
  if (!looker_) looker_.emplace(SpareProcessors::kLong);
  return looker_->goes_on();
}

// Ends early when there is work.
void Engine::spin_idle(Duration most) const {
  const uint64_t handed_over = handed_over_.load(std::memory_order_relaxed);
  const TimePoint end = now() + most;
  while (now() < end) {
    if (wanted_.load(std::memory_order_relaxed)) return;
    if (handed_over_.load(std::memory_order_relaxed) != handed_over) return;
    relax();
  }
}

// Ends early when somebody waits, and nothing more is handed over.
void Engine::spin_busy(Duration most) const {
  for (const TimePoint end = now() + most; now() < end; relax()) {
    if (wanted_.load(std::memory_order_relaxed)) return;
    if (settled_.load(std::memory_order_relaxed) && is_awaited()) return;
  }
}

bool Engine::drain(Duration patience) {
  make_current();
  const TimePoint deadline = now() + patience;
  std::unique_lock lock(mutex_);
  while (!in_flight_.empty() && now() < deadline) {
    look(lock);
    if (!in_flight_.empty()) rest(lock, deadline);
  }
  return in_flight_.empty();
}

}  // namespace heddle::cuda
