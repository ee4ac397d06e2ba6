#include "policy/deadline/model_state.h"

#include <algorithm>
#include <tuple>

#include "policy/dispatch/lessees.h"
#include "policy/invariant.h"

namespace heddle::policy {
namespace {

constexpr Duration kRevocation = std::chrono::milliseconds(22);  // TReM's, until there are measured ones
constexpr uint64_t kMeasured = 8;                                // revocations that say how long they take

}  // namespace

ModelState::ModelState(const std::vector<DeviceId>& devices, bool has_classes, bool terminates)
    : has_classes_(has_classes), terminates_(terminates) {
  require(!devices.empty(), "a pool has a device");
  for (const DeviceId device : devices) places_.push_back({.id = device});
}

ModelState::Place& ModelState::place(DeviceId device) {
  const auto found = std::lower_bound(places_.begin(), places_.end(), device,
                                      [](const Place& each, DeviceId other) { return each.id < other; });
  require(found != places_.end() && found->id == device, "the device is one of the policy's");
  return *found;
}

const ModelState::Member* ModelState::find(Lessee lessee) const {
  const auto found = members_.find(lessee);
  return found == members_.end() ? nullptr : &found->second;
}

// What waits for a device.

void ModelState::waits(Lessee lessee, const Tenant& tenant, TimePoint now) {
  Member& member = members_[lessee];
  member = {.lessee = lessee, .tenant = tenant, .arrival = now, .since = now};
  ++version_;
  if (!is_request(member)) return;
  rates_.arrived(now);
  asking_.insert(lessee);
}

void ModelState::waits_no_longer(Lessee lessee) {
  const Member* member = find(lessee);
  ++version_;
  if (!member || member->device) return;
  asks_no_more(*member);
  members_.erase(lessee);
}

void ModelState::asks_no_more(const Member& member) {
  asking_.erase(member.lessee);
  late_.erase({member.arrival, member.lessee});
}

// Who is late stays so.
std::vector<const ModelState::Member*> ModelState::live_requests(TimePoint now) {
  std::vector<const Member*> live;
  for (auto it = asking_.begin(); it != asking_.end();) {
    const Member& member = members_.at(*it++);
    if (is_late(member, now)) {
      give_up(member);
    } else {
      live.push_back(&member);
    }
  }
  std::sort(live.begin(), live.end(),
            [&](const Member* one, const Member* other) { return goes_before(*one, *other, now); });
  return live;
}

void ModelState::give_up(const Member& request) {
  asking_.erase(request.lessee);
  late_.insert({request.arrival, request.lessee});
}

// What happens on a device.

void ModelState::joined(DeviceId device, Lessee lessee, const Tenant& tenant, TimePoint now) {
  const Member* before = find(lessee);
  const bool waited = before && !before->device;
  if (waited) asks_no_more(*before);
  Member& member = members_[lessee];
  if (!waited) member = {.arrival = now};
  member.lessee = lessee;
  member.tenant = tenant;
  member.device = device;
  member.fresh = waited;
  member.ready = false;
  member.since = now;
  auto& lessees = place(device).lessees;
  if (std::find(lessees.begin(), lessees.end(), lessee) == lessees.end()) lessees.push_back(lessee);
  ++version_;
}

void ModelState::left(DeviceId device, Lessee lessee, TimePoint now) {
  returned(device, lessee, now);
  std::erase(place(device).lessees, lessee);
  members_.erase(lessee);
}

void ModelState::ready(Lessee lessee, TimePoint now) {
  Member* member = this->member(lessee);
  if (!member || !member->device || std::exchange(member->ready, true)) return;
  ++version_;
  if (!member->fresh) return;
  member->since = now;
  member->has_since = now;
}

void ModelState::pending(Lessee lessee, TimePoint now) {
  Member* member = this->member(lessee);
  if (!member || member->working) return;
  ++version_;
  // A request that waited for a device began when it asked for one, unless its program was slow to go on.
  const bool waited = std::exchange(member->fresh, false);
  if (!waited && is_request(*member)) rates_.arrived(now);
  if (!waited || now - member->since > member->tenant.slo) {
    const bool has = member->device && (place(*member->device).holder == lessee || member->beside);
    member->arrival = now;
    member->has_since = has ? std::optional(now) : std::nullopt;
  }
  member->working = true;
  member->since = now;
  member->attained = member->had = {};
}

void ModelState::drained(Lessee lessee, TimePoint now) {
  Member* member = this->member(lessee);
  if (!member || !member->working) return;
  ++version_;
  member->working = false;
  member->since = now;
  member->drain = member->uncommitted = {};
  member->exposed = false;
  if (is_request(*member)) rates_.finished(member->tenant.app, member->used(now), now);
  member->has_since.reset();
}

void ModelState::served(Lessee lessee, const Service& since_last) {
  Member* member = this->member(lessee);
  if (!member) return;
  member->attained += since_last.busy + since_last.copies;
  member->drain = since_last.drain;
  member->uncommitted = since_last.uncommitted;
  member->exposed = since_last.exposed;
}

void ModelState::returned(DeviceId device, Lessee lessee, TimePoint now) {
  ++version_;
  Place& there = place(device);
  if (Member* member = this->member(lessee)) {
    member->beside = false;
    member->had = member->used(now);
    member->has_since.reset();
  }
  if (there.holder != lessee) return;
  const auto since = terminates_ ? there.terminated : there.withdrawn;
  if (there.revoked && since) {
    revocations_.add(now - *since);
    there.revocations.add(now - *since);
  }
  there.holder.reset();
  there.withdrawn.reset();
  there.terminated.reset();
  there.drains.reset();
  there.revoked = there.in_hurry = false;
  if (Member* member = this->member(lessee); member && member->working) member->since = now;
}

void ModelState::not_terminated(DeviceId device, Lessee lessee, TimePoint now) {
  Place& there = place(device);
  if (there.holder != lessee || !there.terminated) return;
  there.terminated.reset();
  there.drains = now;
  ++version_;
}

void ModelState::lend(Place& place, const Member& to, TimePoint now) {
  place.holder = to.lessee;
  place.lent = now;
  member(to.lessee)->has_device(now);
  ++version_;
}

void ModelState::lend_beside(const Member& to, TimePoint now) {
  Member* const member = this->member(to.lessee);
  member->beside = true;
  member->has_device(now);
  ++version_;
}

// Who goes before whom.

bool ModelState::is_late(const Member& member, TimePoint now) const {
  return now + std::max(Duration{}, expected(member) - member.used(now)) > member.deadline();
}

bool ModelState::goes_before(const Member& one, const Member& other, TimePoint now) const {
  const auto rank = [&](const Member& member) {
    if (!is_request(member)) return std::tuple(2, member.since, member.lessee);
    if (is_late(member, now)) return std::tuple(1, member.arrival, member.lessee);
    return std::tuple(0, member.deadline(), member.lessee);
  };
  return rank(one) < rank(other);
}

bool ModelState::has_batch(const Place& place) const {
  const Member* holder = holder_of(place);
  return holder && holder->working && !is_request(*holder);
}

bool ModelState::has_request(const Place& place) const {
  return std::any_of(place.lessees.begin(), place.lessees.end(), [&](Lessee lessee) {
    const Member& member = *find(lessee);
    return is_request(member) && (member.working || member.fresh);
  });
}

bool ModelState::is_idle(const Place& place) const {
  const Member* holder = holder_of(place);
  return (!holder || !holder->working) && !has_request(place);
}

const RevocationTimes& ModelState::revocations_of(const Place& place) const {
  return place.revocations.count() < kMeasured ? revocations_ : place.revocations;
}

Duration ModelState::revocation_time(const Place& place) const {
  const RevocationTimes& measured = revocations_of(place);
  return measured.count() < kMeasured ? kRevocation : measured.longest();
}

uint64_t ModelState::revocations_measured(const Place& place) const {
  return revocations_of(place).count();
}

const ModelState::Member* ModelState::next_on(const Place& place, TimePoint now) const {
  const Member* next = nullptr;
  for (const Lessee lessee : place.lessees) {
    const Member& member = *find(lessee);
    if (!member.working || place.holder == lessee) continue;
    if (place.reserved && !is_request(member)) continue;
    if (!next || goes_before(member, *next, now)) next = &member;
  }
  return next;
}

TimePoint ModelState::free_at(const Place& place, TimePoint now) const {
  const Member* holder = holder_of(place);
  if (has_batch(place)) {
    const auto since = terminates_ && !place.drains ? place.terminated : place.withdrawn;
    const TimePoint drained = place.drains ? now + holder->drain : now;
    return std::max(drained, since.value_or(now) + revocation_time(place));
  }
  if (holder && holder->working) return std::max(now, place.lent + expected(*holder));
  if (!has_request(place)) return now;
  const auto asks = [&](Lessee lessee) {
    return is_request(*find(lessee)) && (find(lessee)->working || find(lessee)->fresh);
  };
  const auto next = std::find_if(place.lessees.begin(), place.lessees.end(), asks);
  return now + expected(*find(*next));
}

}  // namespace heddle::policy
