#include "policy/deadline/deadline.h"

#include <algorithm>
#include <tuple>

#include "policy/dispatch/lessees.h"

namespace heddle::policy {
namespace {

constexpr Duration kTurn = std::chrono::seconds(1);  // of who is in no hurry, while others wait
// From a termination that came to nothing to the next try, and between looks whether that would do.
constexpr Duration kTryAgain = std::chrono::milliseconds(200), kLookAgain = std::chrono::milliseconds(10);

}  // namespace

Deadline::Deadline(const std::vector<DeviceId>& devices, Revocation revocation, bool has_classes)
    : revocation_(revocation), state_(devices, has_classes, revocation == Revocation::kHard) {}

bool Deadline::is_special(Lessee lessee) const {
  const Member* member = state_.find(lessee);
  return member && state_.is_request(*member);
}

bool Deadline::may_go(Lessee lessee) const {
  const Member* member = state_.find(lessee);
  if (!member || !state_.is_request(*member)) return batch_slots_ > 0;
  return std::find(may_go_.begin(), may_go_.end(), lessee) != may_go_.end();
}

bool Deadline::open(Lessee lessee, DeviceId device) const {
  const Member* member = state_.find(lessee);
  const auto& devices = member && state_.is_request(*member) ? for_requests_ : for_batch_;
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

void Deadline::placed(Lessee lessee, DeviceId device) {
  const Member* member = state_.find(lessee);
  if (member && state_.is_request(*member)) {
    std::erase(may_go_, lessee);
  } else if (batch_slots_ > 0) {
    --batch_slots_;
  }
  std::erase(for_requests_, device);
  std::erase(for_batch_, device);
  batch_slots_ = std::min(batch_slots_, for_batch_.size());
}

bool Deadline::plan(TimePoint now) {
  look(now);
  return std::exchange(changed_, false);
}

void Deadline::look(TimePoint now) {
  if (version_ == state_.version() && looked_ == now) return;
  version_ = state_.version();
  looked_ = now;
  const auto may_go = may_go_;
  const auto for_batch = for_batch_;
  const size_t slots = batch_slots_;
  live_ = state_.live_requests(now);
  give_up_some(now);
  if (state_.has_classes()) reserve(now);
  open_places();
  if (revocation_ != Revocation::kOff) revoke_for_requests(now);
  const auto is_to_go = [](const Place& place) { return place.revoked && !place.withdrawn; };
  changed_ |= may_go != may_go_ || for_batch != for_batch_ || slots != batch_slots_ ||
              std::any_of(state_.places().begin(), state_.places().end(), is_to_go);
}

void Deadline::give_up_some(TimePoint now) {
  std::vector<TimePoint> free;
  for (const Place& place : state_.places()) {
    if (revocation_ != Revocation::kOff || !state_.has_batch(place)) free.push_back(state_.free_at(place, now));
  }
  if (live_.empty() || free.empty() || state_.all_end_in_time(live_, free)) return;
  std::vector<const Member*> kept;
  for (const Member* request : live_) {
    kept.push_back(request);
    if (state_.all_end_in_time(kept, free)) continue;
    const auto longest = std::max_element(kept.begin(), kept.end(), [&](const Member* one, const Member* other) {
      return state_.expected(*one) < state_.expected(*other);
    });
    state_.give_up(**longest);
    kept.erase(longest);
  }
  live_ = std::move(kept);
}

// Requests go to idle devices, as many as there are of both. Batch tasks go to what is left of those that nobody else
// has work on. Only requests that can still end in time keep devices from batch: others may wait for memory for long.
void Deadline::open_places() {
  may_go_.clear();
  for_requests_.clear();
  for_batch_.clear();
  for (const Place& place : state_.places()) {
    if (!state_.is_idle(place)) continue;
    for_requests_.push_back(place.id);
    const auto works = [&](Lessee lessee) { return state_.find(lessee)->working || state_.find(lessee)->fresh; };
    if (!place.reserved && std::none_of(place.lessees.begin(), place.lessees.end(), works))
      for_batch_.push_back(place.id);
  }
  const auto may_go = [&](Lessee lessee) {
    const bool room = may_go_.size() < for_requests_.size();
    if (room) may_go_.push_back(lessee);
    return room;
  };
  for (const Member* member : live_) {
    if (!may_go(member->lessee)) break;
  }
  for (const auto& [arrival, lessee] : state_.late_requests()) {
    if (!may_go(lessee)) break;
  }
  const size_t kept = std::min(live_.size(), for_requests_.size());
  batch_slots_ = std::min(for_batch_.size(), for_requests_.size() - kept);
}

// Where workers are terminated, a device whose holder would not outlive that is taken last, and does for its request
// only where no other would be free sooner.
void Deadline::revoke_for_requests(TimePoint now) {
  size_t coming = for_requests_.size(), draining = 0;  // devices for requests that have none
  std::vector<Place*> revocable;
  for (Place& place : state_.places()) {
    if (!place.withdrawn) place.revoked = false;
    if (!state_.has_batch(place)) continue;
    const Member* first = state_.next_on(place, now);
    if (place.reserved || (first && state_.is_request(*first) && !state_.is_late(*first, now))) place.revoked = true;
    if (place.revoked && !state_.has_request(place)) ++(place.drains ? draining : coming);
    if (!place.revoked && !state_.has_request(place) && revokes_any()) revocable.push_back(&place);
  }
  const auto drains = [&](const Place& place) {
    return revocation_ == Revocation::kHard && state_.holder_of(place)->exposed;
  };
  const auto cost = [&](const Place& place) {
    return std::tuple(drains(place), state_.holder_of(place)->uncommitted, place.id);
  };
  std::sort(revocable.begin(), revocable.end(),
            [&](const Place* one, const Place* other) { return cost(*one) < cost(*other); });
  for (Place* place : revocable) {
    if (coming + (drains(*place) ? draining : 0) >= live_.size()) break;
    ++coming;
    place->revoked = true;
  }
}

// The request that waits for this very device, or for any.
const Deadline::Member* Deadline::first_waiting(const Place& place, TimePoint now) const {
  const Member* first = state_.next_on(place, now);
  if (first && !state_.is_request(*first)) first = nullptr;
  if (!live_.empty() && (!first || state_.goes_before(*live_.front(), *first, now))) first = live_.front();
  return first;
}

// Until when batch is not lent the device although nobody has it: a request was just placed there and is about to
// begin, or one that can still end in time is to be placed there.
std::optional<TimePoint> Deadline::kept_until(const Place& place, TimePoint now) const {
  for (const Lessee lessee : place.lessees) {
    const Member& member = *state_.find(lessee);
    if (state_.is_request(member) && member.fresh && now < member.since + kMergeGap) return member.since + kMergeGap;
  }
  if (!state_.is_idle(place) || live_.empty() || for_requests_.size() > live_.size()) return {};
  return state_.deadline(*live_.front()) + Duration(1);
}

// When what is in flight of the holder may not be waited for any longer: the request that goes first is late if it
// does not have the device a revocation's time later. At once where it would be, by what is known of what is in flight.
// Where that came to nothing it is tried again once the holder would outlive its worker.
std::optional<TimePoint> Deadline::terminates_at(const Place& place, const Member& holder, TimePoint now) const {
  if (revocation_ != Revocation::kHard || place.terminated) return {};
  if (place.drains && holder.exposed) return {};
  const Member* first = first_waiting(place, now);
  if (!first) return {};
  const TimePoint latest = state_.deadline(*first) - state_.expected(*first);
  const TimePoint at = now + holder.drain > latest ? now : latest - state_.revocation_time(place);
  return place.drains ? std::max(at, *place.drains + kTryAgain) : at;
}

// When the holder's turn is over, if others wait for the device.
std::optional<TimePoint> Deadline::gives_way(const Place& place, const Member& holder, TimePoint now) const {
  if (place.withdrawn) return {};
  const Member* next = state_.next_on(place, now);
  if (!next) return {};
  if (!holder.working) return state_.is_request(*next) ? now : holder.since + kMergeGap;
  if (state_.is_request(holder) && (!state_.is_request(*next) || !state_.is_late(holder, now))) return {};
  return place.lent + kTurn;
}

void Deadline::lend(Place& place, TimePoint now, std::vector<LeaseOrder>& out) {
  const Member* next = state_.next_on(place, now);
  if (!next || (!state_.is_request(*next) && kept_until(place, now))) return;
  state_.lend(place, *next, now);
  out.emplace_back(Lend{next->lessee});
  look(now);
}

void Deadline::withdraw(Place& place, bool terminate, TimePoint now, std::vector<LeaseOrder>& out) {
  if (!place.withdrawn) place.withdrawn = now;
  if (terminate) {
    place.terminated = now;
    place.drains.reset();
  }
  out.emplace_back(Withdraw{*place.holder, terminate});
}

void Deadline::decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out) {
  look(now);
  Place& there = state_.place(device);
  if (!there.holder) return lend(there, now, out);
  const Member& holder = *state_.holder_of(there);
  if (there.revoked && holder.working) {
    const auto at = terminates_at(there, holder, now);
    const bool terminate = at && *at <= now;
    if (!there.withdrawn || terminate) withdraw(there, terminate, now, out);
    return;
  }
  const auto over = gives_way(there, holder, now);
  if (over && *over <= now) withdraw(there, false, now, out);
}

std::optional<TimePoint> Deadline::next(DeviceId device, TimePoint now) const {
  if (version_ != state_.version()) return now;
  const Place& there = state_.place(device);
  std::optional<TimePoint> next;
  const auto at = [&](std::optional<TimePoint> when) {
    if (when) next = next ? std::min(*next, std::max(now, *when)) : std::max(now, *when);
  };
  if (device == state_.places().front().id) at(next_reservation(now));
  if (!there.holder) {
    if (state_.next_on(there, now)) at(kept_until(there, now));
    return next;
  }
  const Member& holder = *state_.holder_of(there);
  if (there.revoked && holder.working) {
    at(terminates_at(there, holder, now));
    if (there.drains) at(now + kLookAgain);
  }
  at(gives_way(there, holder, now));
  return next;
}

std::optional<RevocationTime> Deadline::revocation(DeviceId device) const {
  if (revocation_ == Revocation::kOff) return {};
  const Place& place = state_.place(device);
  return RevocationTime{state_.revocation_time(place), state_.revocations_measured(place),
                        revocation_ == Revocation::kHard};
}

}  // namespace heddle::policy
