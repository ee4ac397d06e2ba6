// The part of Leases that takes devices back in the middle of bursts, as deadline policies order.

#include <algorithm>

#include "daemon/leases.h"

namespace heddle::daemon {

void Leases::revoke(const policy::Withdraw& order, Lessee& lessee) {
  if (lessee.pending) lessee.revocation.withdrawn(shared_.now());
  if (order.terminate && lessee.revocation.order(shared_.now()))
    shared_.events.post(TerminationOrdered{order.from.session, order.from.virtual_device});
}

// What batch was doing before a restart of heddled, the policy knows nothing of; under one that terminates it is no
// longer waited for than that would be, where a request is there for the device.
void Leases::revoke_strays(Device& on) {
  const auto time = deadlines_ ? deadlines_->revocation(on.id) : std::nullopt;
  const auto asks = [](const auto& each) { return each.second.user_facing && each.second.pending; };
  if (!time || !time->terminates || std::none_of(on.lessees.begin(), on.lessees.end(), asks)) return;
  for (auto& [id, lessee] : on.lessees) {
    if (!lessee.stray || lessee.user_facing) continue;
    const VirtualDevice* device = ring_of(id);
    if (device && lessee.revocation.may_be_ordered(*device, shared_.now())) revoke({id, true}, lessee);
  }
}

bool Leases::awaits_termination(const Session& session, const VirtualDevice& device) const {
  const Found found = const_cast<Leases*>(this)->find(session, device);
  return found.device && found.lessee->out && found.lessee->revocation.is_ordered();
}

void Leases::terminated(const Session& session, const VirtualDevice& device) {
  const Found found = find(session, device);
  if (found.device) found.lessee->revocation.terminate(device, shared_.now());
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
  found.lessee->revocation.refuse(shared_.now());
  found.device->sla.not_terminated();
  if (Job* job = shared_.registry.find_job(session.job)) job->sla.not_terminated();
  found.device->dispatch->not_terminated(found.id, shared_.now());
  told(*found.device);
}

std::optional<Leases::Bound> Leases::bound(DeviceId device) const {
  const auto time = deadlines_ ? deadlines_->revocation(device) : std::nullopt;
  if (!time) return std::nullopt;
  return Bound{shared_.config.dispatch.window, time->time, time->measured, &devices_[device.value].sla};
}

}  // namespace heddle::daemon
