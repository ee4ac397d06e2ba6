#include "daemon/revocation.h"

#include <algorithm>
#include <utility>

#include "daemon/resumable.h"
#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

Duration time_of(uint64_t nanoseconds) {
  return Duration(static_cast<int64_t>(nanoseconds));
}

}  // namespace

void Revocation::begin(const VirtualDevice& device, TimePoint now) {
  forget_lease();
  completed_ = device.control->log().completed;
  looked_ns_ = committed_ns_ = usage_of(device, now).busy_ns;
}

void Revocation::forget_lease() {
  const Outlived outlived = outlived_;
  *this = {};
  outlived_ = outlived;
}

// What is under way is likely to take as long again as it is known to take: as it has taken, and in an earlier worker
// had. Nothing else is known of it here.
Duration Revocation::drain(Duration elapsed) const {
  const Duration known = completed_ == outlived_.behind ? std::max(elapsed, outlived_.time) : elapsed;
  return 2 * known - elapsed;
}

// What would be run again is at most what the device was busy for since the last look before something was done, as
// nobody notes when that was.
void Revocation::describe(const VirtualDevice& device, TimePoint now, policy::Service& service) {
  const protocol::LogState log = device.control->log();
  const protocol::Usage usage = usage_of(device, now);
  if (log.completed != completed_) committed_ns_ = looked_ns_;
  if (!log.under_way()) committed_ns_ = usage.busy_ns;
  completed_ = log.completed;
  looked_ns_ = usage.busy_ns;
  service.uncommitted = time_of(usage.busy_ns - std::min(usage.busy_ns, committed_ns_));
  if (usage.busy_since_ns != 0) service.drain = drain(now.time_since_epoch() - time_of(usage.busy_since_ns));
  service.exposed = !present_obstacle(device).empty();
}

bool Revocation::may_be_ordered(const VirtualDevice& device, TimePoint now) const {
  return !refused_ || (now >= *refused_ + policy::kTerminationRetry && present_obstacle(device).empty());
}

void Revocation::terminate(const VirtualDevice& device, TimePoint now) {
  policy::Service service;
  describe(device, now, service);
  lost_ = service.uncommitted;
  if (outlived_.behind != completed_) outlived_ = {{}, completed_};
  outlived_.time = std::max(outlived_.time, lost_);
  terminated_ = true;
  order(now);  // where a heddled before this one did that
}

void Revocation::end(TimePoint now, std::array<policy::Sla*, 2> books) {
  const Revocation was = *this;
  forget_lease();
  const auto since = was.terminated_ ? was.ordered_ : was.since_;
  if (!since) return;
  for (policy::Sla* sla : books) {
    if (!sla) continue;
    sla->revoked(now - *since, was.terminated_);
    sla->work_lost(was.lost_);
  }
}

}  // namespace heddle::daemon
