// The part of Leases that takes devices back in the middle of bursts, as deadline policies order: what these are told
// of the holders' work for it, and what it cost.

#include <algorithm>

#include "daemon/leases.h"
#include "daemon/resumable.h"
#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

Duration time_of(uint64_t nanoseconds) {
  return Duration(static_cast<int64_t>(nanoseconds));
}

}  // namespace

// What it has done by now cannot be lost.
void Leases::start_looking(const VirtualDevice& device, Lessee& lessee) {
  const uint64_t busy = usage_of(device, shared_.now()).busy_ns;
  lessee.revocation = {.completed = device.control->log().completed, .looked = busy, .done = busy};
}

// What is under way is likely to take as long again as it has taken: nothing else is known of it here. What would be
// run again is at most what the device was busy for since the last look before something was done, as nobody notes when
// that was.
void Leases::describe_work(const VirtualDevice& device, Lessee& lessee, policy::Service& service) {
  const TimePoint now = shared_.now();
  const protocol::LogState log = device.control->log();
  const protocol::Usage usage = usage_of(device, now);
  Revocation& revocation = lessee.revocation;
  if (log.completed != revocation.completed) revocation.done = revocation.looked;
  if (log.affected <= log.completed) revocation.done = usage.busy_ns;
  revocation.completed = log.completed;
  revocation.looked = usage.busy_ns;
  service.uncommitted = time_of(usage.busy_ns - std::min(usage.busy_ns, revocation.done));
  if (usage.busy_since_ns != 0) service.drain = now.time_since_epoch() - time_of(usage.busy_since_ns);
  service.exposed = !present_obstacle(device).empty();
}

void Leases::revoke(const policy::Withdraw& order, Lessee& lessee) {
  Revocation& revocation = lessee.revocation;
  const TimePoint now = shared_.now();
  if (lessee.pending && !revocation.since) revocation.since = now;
  if (!order.terminate || revocation.ordered) return;
  revocation.ordered = now;
  shared_.events.post(TerminationOrdered{order.from.session, order.from.virtual_device});
}

// What batch was doing before a restart of heddled, the policy knows nothing of; under one that terminates it is no
// longer waited for than that would be, where a request is there for the device.
void Leases::revoke_strays(Device& on) {
  const auto time = deadlines_ ? deadlines_->revocation(on.id) : std::nullopt;
  const auto asks = [](const auto& each) { return each.second.user_facing && each.second.pending; };
  if (!time || !time->terminates || std::none_of(on.lessees.begin(), on.lessees.end(), asks)) return;
  for (auto& [id, lessee] : on.lessees) {
    if (lessee.stray && !lessee.user_facing && !lessee.revocation.refused) revoke({id, true}, lessee);
  }
}

bool Leases::awaits_termination(const Session& session, const VirtualDevice& device) const {
  const Found found = const_cast<Leases*>(this)->find(session, device);
  return found.device && found.lessee->out && found.lessee->revocation.ordered;
}

void Leases::terminated(const Session& session, const VirtualDevice& device) {
  const Found found = find(session, device);
  if (!found.device) return;
  policy::Service service;
  describe_work(device, *found.lessee, service);
  Revocation& revocation = found.lessee->revocation;
  revocation.terminated = true;
  revocation.lost = service.uncommitted;
  if (!revocation.ordered) revocation.ordered = shared_.now();  // by a heddled before this one
}

void Leases::not_terminated(const Session& session, VirtualDevice& device, const std::string& why) {
  TerminationCounts& counts = device.terminations;
  ++counts.refused;
  counts.why = why;
  if (device.task && std::exchange(counts.told, device.task->id) != device.task->id)
    shared_.log->info(
        "session {} on device {} is not terminated, although the device is wanted: {}; what it has in "
        "flight ends first",
        session.id.value, device.task->device.value, why);
  const Found found = find(session, device);
  if (!found.device) return;
  found.lessee->revocation.ordered.reset();
  found.lessee->revocation.refused = true;
  found.device->sla.not_terminated();
  if (Job* job = shared_.registry.find_job(session.job)) job->sla.not_terminated();
  found.device->dispatch->not_terminated(found.id, shared_.now());
  told(*found.device);
}

// The lease is back.
void Leases::count_revocation(Device& on, const Session& session, Lessee& lessee) {
  const Revocation was = std::exchange(lessee.revocation, {});
  const auto since = was.terminated ? was.ordered : was.since;
  if (!deadlines_ || !since) return;
  Job* job = shared_.registry.find_job(session.job);
  for (policy::Sla* sla : {&on.sla, job ? &job->sla : nullptr}) {
    if (!sla) continue;
    sla->revoked(shared_.now() - *since, was.terminated);
    sla->work_lost(was.lost);
  }
}

std::optional<Leases::Bound> Leases::bound(DeviceId device) const {
  const auto time = deadlines_ ? deadlines_->revocation(device) : std::nullopt;
  if (!time) return std::nullopt;
  return Bound{shared_.config.dispatch.window, time->time, time->measured, &devices_[device.value].sla};
}

}  // namespace heddle::daemon
