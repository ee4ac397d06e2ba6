#include "daemon/leases.h"

#include <algorithm>

#include "daemon/open_lease.h"
#include "daemon/tenant.h"
#include "daemon/usage.h"

namespace heddle::daemon {
namespace {

using State = protocol::Lease::State;

// While several have work for a device, what its holder uses is looked at so often.
constexpr Duration kLookEvery = std::chrono::milliseconds(10);

policy::Lessee lessee_id(const Session& session, const VirtualDevice& device) {
  return {session.id, device.index};
}

// Totals since `told`; the largest bursts and gaps as they are now.
policy::Service service_since(const protocol::Usage& usage, const protocol::Usage& told) {
  policy::Service service = service_of(usage);
  const policy::Service more = service_of(difference(usage, told));
  service.busy = more.busy;
  service.copies = more.copies;
  service.bursts = more.bursts;
  return service;
}

}  // namespace

void Leases::open(const MakeDispatch& make, policy::DeadlineFamily* deadlines) {
  deadlines_ = deadlines;
  devices_.clear();
  for (const DeviceState& device : shared_.registry.devices) {
    Device& on = devices_.emplace_back();
    on.id = device.id;
    on.dispatch = make();
  }
}

// Null where everybody may issue.
Leases::Device* Leases::lent(DeviceId device) {
  if (device.value >= devices_.size() || !devices_[device.value].dispatch->exclusive()) return nullptr;
  return &devices_[device.value];
}

Leases::Found Leases::find(const Session& session, const VirtualDevice& device) {
  if (!device.task || !has_device(device.task->state)) return {};
  Device* on = lent(device.task->device);
  if (!on) return {};
  const policy::Lessee id = lessee_id(session, device);
  const auto found = on->lessees.find(id);
  return found == on->lessees.end() ? Found{} : Found{on, &found->second, id};
}

VirtualDevice* Leases::ring_of(const policy::Lessee& id) {
  Session* session = shared_.registry.find_session(id.session);
  return session ? &session->devices[id.virtual_device] : nullptr;
}

// The word, then the bell: a worker that sleeps looks at the word when it wakes.
void Leases::write(const policy::Lessee& id, const Lessee& lessee) {
  VirtualDevice* device = ring_of(id);
  if (!device || !device->control) return;
  device->control->write_lease(lessee.lease);
  if (device->ring) protocol::ring_bell(device->ring->header().to_worker);
}

// What the policy of one device is told may lead to orders of the others'.
void Leases::told(Device& on) {
  unplanned_ = on.changed = true;
  if (!on.dispatch->spans_devices()) return;
  for (Device& each : devices_) each.changed = true;
}

void Leases::waits(const Session& session, const VirtualDevice& device) {
  const Job* job = shared_.registry.find_job(session.job);
  if (!deadlines_ || !job || !device.control) return;
  deadlines_->waits(session.model, lessee_id(session, device), tenant_of(*job, session), shared_.now());
  unplanned_ = true;
}

void Leases::joined(const Session& session, VirtualDevice& device, bool restored) {
  if (!device.control) return;
  Device* on = lent(device.task->device);
  if (!on) return write_open_lease(session, device, shared_.config.dispatch.window);
  Lessee lessee;
  device.control->read_lease(lessee.lease);
  const TimePoint now = shared_.now();
  const Job* job = shared_.registry.find_job(session.job);
  const policy::Tenant tenant = job ? tenant_of(*job, session) : policy::Tenant{.job = session.job};
  lessee.user_facing = tenant.kind == policy::JobClass::kUserFacing;
  // Who pays for a part of the device is not to be charged for what it does not use. Requests are over when they end,
  // and one that has no device yet waits for whichever falls idle.
  lessee.prompt = tenant.limit < 1 || lessee.user_facing || deadlines_;
  lessee.on_host = may_be_promoted(session, device);
  if (!restored && device.task->serial != 0) lessee.request.came(device.task->arrived);
  lessee.since = now;
  lessee.ends = now;
  lessee.told = usage_done(device, now);
  lessee.lease.state = State::kWithdrawn;
  lessee.lease.wanted = false;
  // Its worker may have work on the device, be it from under `open`. What is withdrawn is a generation of its own, so
  // that the worker says when that is over. Without a worker nothing is out.
  lessee.out = lessee.stray = restored && device.worker;
  if (lessee.stray) ++lessee.lease.generation;
  lessee.revocation.begin(device, now);
  const policy::Lessee id = lessee_id(session, device);
  on->lessees[id] = lessee;
  write(id, lessee);
  on->dispatch->joined(id, tenant, now);
  if (deadlines_) deadlines_->waits_no_longer(id);
  told(*on);
}

void Leases::ready(const Session& session, VirtualDevice& device) {
  if (!lent(device.task->device)) return write_open_lease(session, device, shared_.config.dispatch.window);
  const Found found = find(session, device);
  if (!found.device) return;
  found.lessee->on_host = may_be_promoted(session, device);
  if (!deadlines_) return;
  found.device->dispatch->ready(found.id, shared_.now());
  told(*found.device);
}

void Leases::left(const Session& session, const VirtualDevice& device) {
  const policy::Lessee id = lessee_id(session, device);
  if (!device.task) return;
  Device* on = lent(device.task->device);
  if (!on) return;
  const auto found = on->lessees.find(id);
  if (found == on->lessees.end()) {
    if (device.task->granted == TimePoint{}) waits_no_longer(session, device);
    return;
  }
  measure(*on, id, found->second);
  Lessee& lessee = found->second;
  end_request(session, lessee);
  lessee.lease.state = State::kWithdrawn;
  lessee.lease.wanted = false;
  write(id, lessee);
  on->dispatch->left(id, shared_.now());
  on->lessees.erase(found);
  told(*on);
}

// A request that never had a device is missed, unless its program has gone.
void Leases::waits_no_longer(const Session& session, const VirtualDevice& device) {
  Job* job = shared_.registry.find_job(session.job);
  if (job && job->tenant.kind == policy::JobClass::kUserFacing && (session.failed || !session.ending))
    job->sla.request_missed();
  if (!deadlines_) return;
  deadlines_->waits_no_longer(lessee_id(session, device));
  unplanned_ = true;
}

// That of a task which is over, or that of a session which has failed. Where the program has gone, nobody waits for it.
void Leases::end_request(const Session& session, Lessee& lessee) {
  Job* job = shared_.registry.find_job(session.job);
  if (!job || !lessee.user_facing || !lessee.pending) return;
  if (session.failed) return lessee.request.miss(job->sla);
  if (!session.ending) lessee.request.end(job->sla, job->tenant.slo, shared_.now());
}

void Leases::backlog(const Session& session, const VirtualDevice& device) {
  const auto [on, lessee, id] = find(session, device);
  if (!on) return;
  if (!lessee->pending) lessee->request.begin(shared_.now());
  if (lessee->out && lessee->lease.state == State::kHeld) lessee->request.issue(shared_.now());
  if (!lessee->pending && !lessee->out) lessee->since = shared_.now();
  lessee->pending = true;
  on->dispatch->pending(id, shared_.now());
  told(*on);
}

void Leases::drained(const Session& session, const VirtualDevice& device) {
  const Found found = find(session, device);
  if (!found.device) return;
  end_request(session, *found.lessee);
  burst_over(found);
}

void Leases::burst_over(const Found& found) {
  const auto& [on, lessee, id] = found;
  measure(*on, id, *lessee);
  if (lessee->pending && !lessee->out) lessee->since = shared_.now();
  lessee->pending = false;
  on->dispatch->drained(id, shared_.now());
  told(*on);
}

// One that came back already is said again after a restart.
void Leases::returned(const Session& session, const VirtualDevice& device, uint64_t generation) {
  const auto [on, lessee, id] = find(session, device);
  if (!on || !lessee->out || generation != lessee->lease.generation) return;
  measure(*on, id, *lessee);
  lessee->out = false;
  lessee->since = shared_.now();
  Job* job = shared_.registry.find_job(session.job);
  if (deadlines_) lessee->revocation.end(shared_.now(), {&on->sla, job ? &job->sla : nullptr});
  if (!std::exchange(lessee->stray, false)) on->dispatch->returned(id, shared_.now());
  told(*on);
}

// Its request goes on with the other worker.
void Leases::worker_gone(const Session& session, const VirtualDevice& device) {
  const Found found = find(session, device);
  if (!found.device) return;
  found.lessee->lease.state = State::kWithdrawn;
  write(found.id, *found.lessee);
  returned(session, device, found.lessee->lease.generation);
  if (found.lessee->pending) burst_over(found);
}

void Leases::due(DeviceId device) {
  if (Device* on = lent(device)) told(*on);
}

bool Leases::plan() {
  if (!deadlines_ || !std::exchange(unplanned_, false)) return false;
  for (Device& on : devices_) measure_holders(on);
  if (!deadlines_->plan(shared_.now())) return false;
  for (Device& on : devices_) on.changed = true;
  return true;
}

void Leases::decide() {
  for (Device& on : devices_) {
    if (!std::exchange(on.changed, false)) continue;
    decide(on);
  }
}

// What is under way counts once it is done. Counted before, it may be found to have been less, as behind a host call,
// and the lessee would use that much more for nothing.
void Leases::measure(Device& on, const policy::Lessee& id, Lessee& lessee) {
  const VirtualDevice* device = ring_of(id);
  if (!device) return;
  const protocol::Usage usage = usage_done(*device, shared_.now());
  policy::Service service = service_since(usage, lessee.told);
  if (deadlines_ && lessee.out) lessee.revocation.describe(*device, shared_.now(), service);
  on.dispatch->served(id, service, shared_.now());
  lessee.told.busy_ns = std::max(lessee.told.busy_ns, usage.busy_ns);
  lessee.told.copy_ns = std::max(lessee.told.copy_ns, usage.copy_ns);
  lessee.told.bursts = std::max(lessee.told.bursts, usage.bursts);
}

void Leases::measure_holders(Device& on) {
  for (auto& [id, lessee] : on.lessees) {
    if (lessee.out) measure(on, id, lessee);
  }
}

bool Leases::Device::has_stray() const {
  return std::any_of(lessees.begin(), lessees.end(), [](const auto& each) { return each.second.stray; });
}

void Leases::decide(Device& on) {
  measure_holders(on);
  std::vector<policy::LeaseOrder> orders;
  on.has_stray() ? revoke_strays(on) : on.dispatch->decide(shared_.now(), orders);
  unplanned_ |= !orders.empty();
  for (const policy::LeaseOrder& order : orders) std::visit([&](const auto& each) { carry_out(on, each); }, order);
  say_who_is_wanted(on);
  report_overdue(on);
  schedule(on);
}

void Leases::carry_out(Device& on, const policy::Lend& order) {
  const auto found = on.lessees.find(order.to);
  if (found == on.lessees.end()) return;
  Lessee& lessee = found->second;
  const bool ends = order.until != TimePoint::max();
  lessee.lease.state = State::kHeld;
  ++lessee.lease.generation;
  lessee.lease.until_ns = ends ? static_cast<uint64_t>(order.until.time_since_epoch().count()) : UINT64_MAX;
  lessee.lease.window_ns = static_cast<uint64_t>(shared_.config.dispatch.window.count());
  lessee.lease.whole_bursts = order.whole_bursts;
  lessee.out = true;
  lessee.since = shared_.now();
  lessee.ends = order.until;
  lessee.lease.wanted = lessee.always_wanted() || others_wait(on, order.to);
  if (lessee.pending) lessee.request.issue(shared_.now());
  if (const VirtualDevice* device = ring_of(order.to)) lessee.revocation.begin(*device, shared_.now());
  write(order.to, lessee);
}

void Leases::carry_out(Device& on, const policy::Withdraw& order) {
  const auto found = on.lessees.find(order.from);
  if (found == on.lessees.end() || !found->second.out) return;
  Lessee& lessee = found->second;
  lessee.lease.state = State::kWithdrawn;
  lessee.ends = std::min(lessee.ends, shared_.now());
  write(order.from, lessee);
  revoke(order, lessee);
}

// Of those who have the device together nobody waits for another.
bool Leases::others_wait(const Device& on, const policy::Lessee& id) const {
  const TimePoint now = shared_.now();
  const bool together = on.lessees.at(id).has_turn(now);
  return std::any_of(on.lessees.begin(), on.lessees.end(), [&](const auto& each) {
    const auto& [other, lessee] = each;
    return lessee.pending && other != id && !(together && lessee.has_turn(now));
  });
}

// A holder says at once that it has nothing more to do where that matters.
void Leases::say_who_is_wanted(Device& on) {
  for (auto& [id, lessee] : on.lessees) {
    if (!lessee.out) continue;
    const bool wanted = lessee.always_wanted() || others_wait(on, id);
    if (lessee.lease.wanted == wanted) continue;
    lessee.lease.wanted = wanted;
    write(id, lessee);
  }
}

// When the lease becomes overdue. None if it is not out, has no end, or was reported as overdue already.
std::optional<TimePoint> Leases::Lessee::overdue_at(const Shared& shared) const {
  if (!out || overdue || ends == TimePoint::max()) return std::nullopt;
  return std::max(ends, shared.loop.awake_since()) + shared.config.dispatch.return_limit;
}

// A kernel of that length, a worker that is stopped, or one that lies: the others wait for the device all the same.
void Leases::report_overdue(Device& on) {
  for (auto& [id, lessee] : on.lessees) {
    if (const auto at = lessee.overdue_at(shared_); !at || shared_.now() < *at) continue;
    lessee.overdue = true;
    const std::string text = stringf(
        "its work on device %lu went on for %s after its turn was over; dispatch policy %s waits for %s (return_limit)",
        static_cast<unsigned long>(on.id.value), to_string(shared_.now() - lessee.ends).c_str(),
        shared_.config.dispatch.policy.c_str(), to_string(shared_.config.dispatch.return_limit).c_str());
    shared_.events.post(LeaseOverdue{id.session, text});
  }
}

void Leases::schedule(Device& on) {
  const TimePoint now = shared_.now();
  std::optional<TimePoint> next = on.has_stray() ? std::nullopt : on.dispatch->next(now);
  for (const auto& [id, lessee] : on.lessees) {
    if (lessee.out && others_wait(on, id)) next = earlier(next, now + kLookEvery);
    next = earlier(next, lessee.overdue_at(shared_));
  }
  on.timer.reset();
  if (next) on.timer = shared_.loop.at(*next, [this, id = on.id] { shared_.events.post(LeasesDue{id}); });
}

std::optional<Leases::View> Leases::view(const Session& session, const VirtualDevice& device) const {
  const auto [on, lessee, id] = const_cast<Leases*>(this)->find(session, device);
  if (!on) return std::nullopt;
  return view_of(*lessee);
}

Leases::View Leases::view_of(const Lessee& lessee) const {
  const bool over = lessee.lease.state == State::kWithdrawn || shared_.now() >= lessee.ends;
  if (lessee.out) return over ? View{"draining", lessee.ends} : View{"held", lessee.since};
  return {lessee.pending ? "waits" : "idle", lessee.since};
}

std::vector<Leases::Holder> Leases::holders(DeviceId device) const {
  std::vector<Holder> holders;
  const Device* on = const_cast<Leases*>(this)->lent(device);
  if (!on) return holders;
  for (const auto& [id, lessee] : on->lessees) {
    if (lessee.out) holders.push_back({id.session, view_of(lessee)});
  }
  return holders;
}

}  // namespace heddle::daemon
