#include "core/spare_processors.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace heddle {
namespace {

constexpr uint32_t kLooksPerClock = 16;

TimePoint time_now() {
  return MonotonicClock().now();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether the kernel gave this thread's processor to another one since this was asked last. A virtual machine's own
// pauses make gaps too, in which nobody of this machine had the processor.
bool lost_processor() {
  thread_local int64_t known = 0;
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return true;
  return usage.ru_nivcsw > std::exchange(known, usage.ru_nivcsw);
}

// Those that this process may run on.
unsigned processors_allowed() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? static_cast<unsigned>(CPU_COUNT(&allowed)) : 1;
}

}  // namespace

void SpareProcessors::interrupted(TimePoint now) {
  const int64_t pause = pause_.load(std::memory_order_relaxed);
  sleeps_until_.store(now.time_since_epoch().count() + pause, std::memory_order_relaxed);
  pause_.store(std::min(2 * pause, int64_t{kLongestPause.count()}), std::memory_order_relaxed);
}

void SpareProcessors::undisturbed() {
  const int64_t pause = pause_.load(std::memory_order_relaxed);
  if (pause > kShortestPause.count())
    pause_.store(std::max(pause / 2, int64_t{kShortestPause.count()}), std::memory_order_relaxed);
}

SpareProcessors& spare_processors() {
  // Never destroyed: programs wait from their destructors.
  static auto* const own = new SpareProcessors(processors_allowed());
  return *own;
}

Looker::Looker(Duration longest, WaitMode mode) : mode_(mode), began_(time_now()), at_(began_) {
  const Duration may_look = mode == WaitMode::kAuto    ? spare_processors().may_look(began_)
                            : mode == WaitMode::kBlock ? Duration::zero()
                                                       : SpareProcessors::kLong;
  end_ = began_ + std::min(longest, may_look);
}

bool Looker::goes_on() {
  if (mode_ == WaitMode::kBlock) return false;
  relax();
  if (++looks_ % kLooksPerClock != 0) return true;
  if (mode_ == WaitMode::kYield) ::sched_yield();
  const TimePoint at = time_now();
  const Duration gap = at - std::exchange(at_, at);
  if (mode_ == WaitMode::kAuto && gap > SpareProcessors::kGap && lost_processor()) {
    spare_processors().interrupted(at);
    return false;
  }
  return at < end_;
}

void Looker::found() const {
  if (mode_ == WaitMode::kAuto && at_ - began_ > SpareProcessors::kShort) spare_processors().undisturbed();
}

}  // namespace heddle
