#include "policy/deadline/deadline.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "policy/deadline/awaited_batch.h"
#include "policy/deadline/end_in_time.h"
#include "policy/dispatch/lessees.h"

namespace heddle::policy {
namespace {

// Of a request that was placed, at most: until its worker is there, and from then on until its first work.
constexpr Duration kWorkerStarts = AwaitedBatch::kWorkerStarts, kAboutToBegin = std::chrono::milliseconds(10);
// Between looks whether a worker that could not be terminated can be now, and whether requests end in time elsewhere.
constexpr Duration kLookAgain = std::chrono::milliseconds(10);

}  // namespace

Deadline::Deadline(const std::vector<DeviceId>& devices, Revocation revocation, bool has_classes)
    : DeadlinePolicy(ModelState(devices, has_classes, revocation == Revocation::kHard)), revocation_(revocation) {}

bool Deadline::may_go(Lessee lessee) const {
  if (!is_special(lessee)) return batch_slots_ > 0;
  return std::find(may_go_.begin(), may_go_.end(), lessee) != may_go_.end();
}

bool Deadline::open(Lessee lessee, DeviceId device) const {
  const auto& devices = is_special(lessee) ? for_requests_ : for_batch_;
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

void Deadline::placed(Lessee lessee, DeviceId device) {
  if (is_special(lessee)) {
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
  open_places(now);
  if (state_.has_classes()) revoke_for_requests(now);
  const auto is_to_go = [](const Place& place) { return place.revoked && !place.withdrawn; };
  const auto takes_back = std::exchange(takes_back_, next_taken_back(now));
  changed_ |= (takes_back_ && takes_back_ != takes_back) || may_go != may_go_ || for_batch != for_batch_ ||
              slots != batch_slots_ || std::any_of(state_.places().begin(), state_.places().end(), is_to_go);
}

// A request that is late only if a revocation takes as long as it may is not given up: it is the next revocation's
// business, and whoever is given up for what once took long is never taken a device back for again.
void Deadline::give_up_some(TimePoint now) {
  planned_ = live_;
  std::vector<TimePoint> free;
  bool revocable = false;
  for (const Place& place : state_.places()) {
    const bool batch = state_.has_batch(place);
    if (revocation_ != Revocation::kOff || !batch) free.push_back(state_.free_at(place, now));
    revocable |= revocation_ != Revocation::kOff && batch;
  }
  if (live_.empty() || free.empty() || all_end_in_time(state_, live_, free)) return;
  planned_.clear();
  std::vector<const Member*> hopeful;
  const TimePoint first = *std::min_element(free.begin(), free.end());
  for (const Member* request : live_) {
    if (revocable && first + state_.expected(*request) > request->deadline()) {
      hopeful.push_back(request);
      continue;
    }
    planned_.push_back(request);
    if (all_end_in_time(state_, planned_, free)) continue;
    const auto longest = std::max_element(
        planned_.begin(), planned_.end(),
        [&](const Member* one, const Member* other) { return state_.expected(*one) < state_.expected(*other); });
    state_.give_up(**longest);
    planned_.erase(longest);
  }
  live_.clear();
  std::merge(planned_.begin(), planned_.end(), hopeful.begin(), hopeful.end(), std::back_inserter(live_),
             [&](const Member* one, const Member* other) { return state_.goes_before(*one, *other, now); });
}

// Requests go to idle devices, as many as there are of both. Batch tasks go to what is left of those that nobody else
// has work on. Only requests that can still end in time keep devices from batch: others may wait for memory for long.
void Deadline::open_places(TimePoint now) {
  may_go_.clear();
  for_requests_.clear();
  for_batch_.clear();
  for (const Place& place : state_.places()) {
    if (!state_.is_idle(place)) continue;
    for_requests_.push_back(place.id);
    if (!place.reserved && !AwaitedBatch(state_).there(place, now)) for_batch_.push_back(place.id);
  }
  size_t most = for_requests_.size();
  if (most > 0 && live_.empty()) most += kMoreTries;
  const auto may_go = [&](Lessee lessee) {
    const bool room = may_go_.size() < most;
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

void Deadline::Coming::add(const Place& place) {
  ++(place.drains ? draining : count);
  if (place.in_hurry && !place.drains) ++in_hurry;
}

// Which devices are taken back from batch: those whose own lessees ask, those that are reserved, and one for each
// request that has none and gets none otherwise.
void Deadline::revoke_for_requests(TimePoint now) {
  Coming coming{.count = for_requests_.size(), .in_hurry = for_requests_.size()};
  std::vector<Place*> others;
  for (Place& place : state_.places()) {
    if (!place.withdrawn) place.revoked = place.in_hurry = false;
    if (!state_.has_batch(place)) continue;
    if (revocation_ != Revocation::kOff) revoke_for_its_own(place, now);
    if (state_.has_request(place)) continue;
    place.revoked ? coming.add(place) : others.push_back(&place);
  }
  const auto cost = [&](const Place* place) {
    return std::tuple(would_drain(*place), state_.holder_of(*place)->uncommitted, place->id);
  };
  std::sort(others.begin(), others.end(),
            [&](const Place* one, const Place* other) { return cost(one) < cost(other); });
  revoke_for_live(others, coming);
  revoke_for_late(others, coming, now);
}

void Deadline::revoke_for_its_own(Place& place, TimePoint now) const {
  const Member* first = state_.next_on(place, now);
  const bool asked = first && state_.is_request(*first);
  place.revoked |= place.reserved || asked;
  place.in_hurry |= place.reserved || (asked && !state_.is_late(*first, now));
}

// Where workers are terminated, a device whose holder would not outlive that is taken last, and does for its request
// only where no other would be free sooner. What was taken back for late requests does for those that are not.
void Deadline::revoke_for_live(const std::vector<Place*>& others, Coming& coming) {
  for (Place& place : state_.places()) {
    if (!place.revoked || place.in_hurry || state_.has_request(place) || coming.in_hurry >= live_.size()) continue;
    place.in_hurry = true;
    ++coming.in_hurry;
  }
  if (revocation_ == Revocation::kOff || !revokes_any()) return;
  for (Place* place : others) {
    if (coming.count + (would_drain(*place) ? coming.draining : 0) >= live_.size()) break;
    ++coming.count;
    place->revoked = place->in_hurry = true;
  }
}

void Deadline::revoke_for_late(const std::vector<Place*>& others, Coming& coming, TimePoint now) {
  for (Place* place : others) {
    const size_t all = coming.count + coming.draining;
    const size_t left = all - std::min(all, live_.size());
    if (place->revoked || late_that_revoke(*place, left + 1, now) <= left) continue;
    ++coming.count;
    place->revoked = true;
  }
}

// How many late requests have the place taken back from its batch lessee, up to `most`. It had been lent before they
// came: they have waited for a device that is free since then. Who came before that was passed over, and so waits for
// memory, maybe for long: batch has a turn before the next try.
size_t Deadline::late_that_revoke(const Place& place, size_t most, TimePoint now) const {
  const auto& late = state_.late_requests();
  if (now >= place.lent + kTurnLength) return std::min(most, late.size());
  if (revocation_ == Revocation::kOff || !revokes_any()) return 0;
  size_t count = 0;
  for (auto it = late.rbegin(); it != late.rend() && it->first > place.lent && count < most; ++it) ++count;
  return count;
}

bool Deadline::would_drain(const Place& place) const {
  return revocation_ == Revocation::kHard && state_.holder_of(place)->exposed;
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
    if (!state_.is_request(member) || !member.fresh) continue;
    const TimePoint until = member.since + (member.ready ? kAboutToBegin : kWorkerStarts);
    if (now < until) return until;
  }
  if (!state_.is_idle(place) || live_.empty() || for_requests_.size() > live_.size()) return {};
  return live_.front()->deadline() + Duration(1);
}

// A late request waits for the place that is there, or came while its holder had it. No work is lost for one that was
// passed over before: it may wait for the memory that batch gives back when it gets on.
bool Deadline::is_waited_for_late(const Place& place, TimePoint now) const {
  const Member* there = state_.next_on(place, now);
  if (there && state_.is_request(*there) && state_.is_late(*there, now)) return true;
  const auto& late = state_.late_requests();
  return !late.empty() && late.rbegin()->first > place.lent;
}

// Whether the requests without a device all end in time on others than this one, which batch has: on those that are
// idle, that requests have, or that batch was made to leave already.
bool Deadline::end_in_time_elsewhere(const Place& place, TimePoint now) const {
  std::vector<TimePoint> free;
  for (const Place& other : state_.places()) {
    if (other.id == place.id || (state_.has_batch(other) && !other.terminated)) continue;
    if (const auto at = surely_free_at(state_, other, now)) free.push_back(*at);
  }
  return surely_end_in_time(state_, live_, free);
}

// When what is in flight of the holder may not be waited for any longer: the request that goes first is late if it
// does not have the device a revocation's time later. At once where it would be, by what is known of what is in flight.
// But no work is lost for requests as long as other devices will do for all of them.
// A request that has had less time than that from the start on is waited for as long as it may begin, as what is in
// flight is likely to end sooner. It is left what its like take at most: programs of one name ask for unlike work.
// For a request that is late already: when the holder has had its turn. Where that came to nothing it is tried again
// once the holder would outlive its worker.
std::optional<TimePoint> Deadline::terminates_at(const Place& place, const Member& holder, TimePoint now) const {
  if (revocation_ != Revocation::kHard || place.terminated) return {};
  if (place.drains && holder.exposed) return {};
  const Member* first = first_waiting(place, now);
  const bool in_time = first && place.in_hurry && (first->device || !end_in_time_elsewhere(place, now));
  if (!in_time && !is_waited_for_late(place, now)) return {};
  TimePoint at = place.lent + kTurnLength;
  if (in_time) {
    const TimePoint latest = first->deadline() - state_.rates().at_most(first->tenant.app);
    const TimePoint last_chance = latest - state_.revocation_time(place);
    at = now + holder.drain > latest ? now : last_chance < first->arrival ? latest : last_chance;
  }
  return place.drains ? std::max(at, *place.drains + kTerminationRetry) : at;
}

// When the holder's turn is over, if others wait for the device.
std::optional<TimePoint> Deadline::gives_way(const Place& place, const Member& holder, TimePoint now) const {
  if (place.withdrawn) return {};
  const Member* next = state_.next_on(place, now);
  if (!next) return {};
  if (!holder.working) return state_.is_request(*next) ? now : holder.since + kMergeGap;
  if (state_.is_request(holder) && (!state_.is_request(*next) || !state_.is_late(holder, now))) return {};
  return place.lent + kTurnLength;
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

// When requests without a device have one taken back although nothing happens before: because one of them is late then,
// or a turn is over, or what is in flight is waited for no longer. It may be another time for each request that comes.
std::optional<TimePoint> Deadline::next_taken_back(TimePoint now) const {
  const auto& late = state_.late_requests();
  if (late.empty() && live_.empty()) return {};
  TimePoint from = late.empty() ? TimePoint::max() : now;
  for (const Member* request : live_)
    from = std::min(from, request->deadline() - state_.expected(*request) + Duration(1));
  std::optional<TimePoint> next;
  for (const Place& place : state_.places()) {
    if (!state_.has_batch(place)) continue;
    const TimePoint over = std::max(from, place.lent + kTurnLength);
    const auto at = place.revoked ? terminates_at(place, *state_.holder_of(place), now) : std::optional(over);
    if (!at || (!place.revoked && over <= now)) continue;
    next = earlier(next, at);
  }
  return next;
}

std::optional<TimePoint> Deadline::next(DeviceId device, TimePoint now) const {
  if (version_ != state_.version()) return now;
  const Place& there = state_.place(device);
  std::optional<TimePoint> next;
  const auto at = [&](std::optional<TimePoint> when) {
    if (when) next = earlier(next, std::max(now, *when));
  };
  if (device == state_.places().front().id) {
    at(next_reservation(now));
    if (takes_back_ > now) at(takes_back_);  // else all devices have just decided (look)
  }
  if (state_.is_idle(there)) at(AwaitedBatch(state_).next(there, now));
  if (!there.holder) {
    if (state_.next_on(there, now)) at(kept_until(there, now));
    return next;
  }
  const Member& holder = *state_.holder_of(there);
  if (there.revoked && holder.working) {
    const auto terminates = terminates_at(there, holder, now);
    at(terminates);
    const bool may_be_terminated = revocation_ == Revocation::kHard && !there.terminated;
    const bool others_may_do = may_be_terminated && !terminates && !live_.empty();
    if (there.drains || others_may_do) at(now + kLookAgain);
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
