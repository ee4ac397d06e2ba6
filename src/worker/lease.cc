#include "worker/lease.h"

namespace heddle::worker {
namespace {

using State = protocol::Lease::State;

uint64_t nanoseconds(TimePoint at) {
  return static_cast<uint64_t>(at.time_since_epoch().count());
}

}  // namespace

// A lease that heddled goes on changing is read at the next look.
void WorkerLease::read() {
  protocol::Lease lease;
  if (!page_.read_lease(lease)) return;
  if (lease.generation != lease_.generation) given_up_ = used_ = returned_ = false;
  lease_ = lease;
  seen_ = lease.word();
}

bool WorkerLease::over(TimePoint now) const {
  return ends() && nanoseconds(now) >= lease_.until_ns;
}

bool WorkerLease::holds(TimePoint now) {
  if (!in_hand()) return false;
  given_up_ = over(now);
  return !given_up_;
}

bool WorkerLease::begins(TimePoint now) {
  if (used_ || !in_hand()) return holds(now);
  return used_ = true;
}

void WorkerLease::begin_burst(TimePoint now, Duration longest) {
  if (!lease_.whole_bursts || !used_ || !holds(now)) return;
  given_up_ = over(now + longest);
}

std::optional<uint64_t> WorkerLease::due(TimePoint now) {
  if (lease_.state == State::kOpen || lease_.generation == 0 || returned_ || holds(now)) return std::nullopt;
  return lease_.generation;
}

std::optional<Duration> WorkerLease::remaining(TimePoint now) const {
  if (!in_hand() || !ends()) return std::nullopt;
  return Duration(static_cast<int64_t>(lease_.until_ns)) - now.time_since_epoch();
}

}  // namespace heddle::worker
