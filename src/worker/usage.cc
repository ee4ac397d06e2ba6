#include "worker/usage.h"

#include <algorithm>
#include <thread>

#include "core/clock.h"

namespace heddle::worker {
namespace {

TimePoint now() {
  return MonotonicClock().now();
}

uint64_t nanoseconds(Duration duration) {
  return static_cast<uint64_t>(std::max(duration, Duration::zero()).count());
}

constexpr int kMostLooks = 100;
constexpr Duration kPageLookEvery = std::chrono::milliseconds(1);

}  // namespace

// A forerunner that is still about may be writing its last state.
Result<protocol::Usage> UsageMeter::left_on(const protocol::ControlPage& page) {
  protocol::Usage usage;
  for (int look = 0; look < kMostLooks; ++look) {
    if (page.read(usage)) {
      usage.busy_since_ns = 0;
      return usage;
    }
    std::this_thread::sleep_for(kPageLookEvery);
  }
  return fail(ErrorCode::kProtocol, "somebody else goes on writing to the ring's control page");
}

UsageMeter::UsageMeter(protocol::ControlPage page, const protocol::Usage& left)
    : page_(std::move(page)), usage_(left), forerunners_(left), busy_(now()), copying_(now()), unprotected_(now()) {
  publish();
}

void UsageMeter::begin_burst() {
  std::lock_guard lock(mutex_);
  bursts_.begin(now());
  in_burst_.store(true, std::memory_order_relaxed);
}

void UsageMeter::end_burst() {
  std::lock_guard lock(mutex_);
  if (!in_burst_.exchange(false, std::memory_order_relaxed)) return;
  const uint64_t before = bursts_.count();
  bursts_.end();
  if (bursts_.count() != before) publish();
}

// What was handed over may be done already.
void UsageMeter::begin_busy() {
  std::lock_guard lock(mutex_);
  if (!idle_.load(std::memory_order_relaxed)) return;
  busy_since_ = now();
  look_at_flight();
  publish();
}

void UsageMeter::take_back(protocol::RecordType type) {
  if (!computes(type)) return;
  std::lock_guard lock(mutex_);
  ++done_;
  look_at_flight();
  publish();
}

void UsageMeter::count(std::span<const Done> batch) {
  if (batch.empty()) return;
  std::lock_guard lock(mutex_);
  for (const Done& done : batch) add(done);
  busy_since_ = std::max(busy_since_, busy_.end());
  look_at_flight();
  publish();
}

void UsageMeter::add(const Done& done) {
  const bool launch = done.type == protocol::RecordType::kLaunch, copy = done.type == protocol::RecordType::kCopy;
  if (!copy && !computes(done.type)) return;
  usage_.launches += launch;
  usage_.kernel_ns += launch ? nanoseconds(done.ended - done.began) : 0;
  usage_.copies += copy;
  usage_.copied_bytes += copy ? done.bytes : 0;
  usage_.overrun_ns += launch || copy ? done.overrun_ns : 0;
  (copy ? copying_ : busy_).add(done.began, done.ended);
  if (!copy && done.unprotected) unprotected_.add(done.began, done.ended);
  done_ += !copy;
  if (done.ended == TimePoint{}) return;  // it never ran
  bursts_.work(done.began, done.ended);
  in_burst_.store(true, std::memory_order_relaxed);
}

void UsageMeter::look_at_flight() {
  const auto all_done = [this] { return handed_over_.load(std::memory_order_seq_cst) == done_; };
  bool idle = all_done();
  if (idle) {
    idle_.store(true, std::memory_order_seq_cst);
    idle = all_done();
  }
  if (!idle) idle_.store(false, std::memory_order_relaxed);
  usage_.busy_since_ns = idle ? 0 : nanoseconds(busy_since_.time_since_epoch());
}

void UsageMeter::publish() {
  usage_.copy_ns = forerunners_.copy_ns + nanoseconds(copying_.total());
  usage_.busy_ns = forerunners_.busy_ns + nanoseconds(busy_.total());
  usage_.unprotected_ns = forerunners_.unprotected_ns + nanoseconds(unprotected_.total());
  usage_.bursts = forerunners_.bursts + bursts_.count();
  if (bursts_.count() > 0) {
    const Bursts::Largest largest = bursts_.largest();
    usage_.longest_burst_ns = nanoseconds(largest.burst);
    usage_.merged_burst_ns = nanoseconds(largest.merged);
    usage_.longest_gap_ns = nanoseconds(largest.gap);
  }
  page_.publish(usage_);
}

}  // namespace heddle::worker
