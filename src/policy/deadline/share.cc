#include "policy/deadline/share.h"

#include <algorithm>
#include <utility>

#include "policy/deadline/awaited_batch.h"
#include "policy/dispatch/lessees.h"

namespace heddle::policy {

bool Share::may_go(Lessee lessee) const {
  if (!is_special(lessee)) return !for_batch_.empty();
  return std::find(may_go_.begin(), may_go_.end(), lessee) != may_go_.end();
}

bool Share::open(Lessee lessee, DeviceId device) const {
  return is_special(lessee) || std::find(for_batch_.begin(), for_batch_.end(), device) != for_batch_.end();
}

void Share::placed(Lessee lessee, DeviceId device) {
  if (is_special(lessee)) {
    std::erase(may_go_, lessee);
  } else {
    std::erase(for_batch_, device);
  }
}

// Those that can still end in time by deadline, then late ones by arrival.
bool Share::plan(TimePoint now) {
  if (version_ == state_.version() && (!opens_ || now < *opens_)) return false;
  version_ = state_.version();
  opens_.reset();
  const auto may_go = std::exchange(may_go_, {});
  const auto for_batch = std::exchange(for_batch_, {});
  const size_t most = state_.places().size() + kMoreTries;
  for (const Member* request : state_.live_requests(now)) {
    if (may_go_.size() == most) break;
    may_go_.push_back(request->lessee);
  }
  // Thousands, where requests ask for more than there is.
  for (const auto& [arrival, lessee] : state_.late_requests()) {
    if (may_go_.size() == most) break;
    may_go_.push_back(lessee);
  }
  for (const Place& place : state_.places()) {
    if (!AwaitedBatch(state_).there(place, now)) for_batch_.push_back(place.id);
    opens_ = earlier(opens_, AwaitedBatch(state_).next(place, now));
  }
  return may_go != may_go_ || for_batch != for_batch_;
}

void Share::decide(DeviceId device, TimePoint now, std::vector<LeaseOrder>& out) {
  Place& there = state_.place(device);
  for (const Lessee lessee : there.lessees) {
    const Member& member = *state_.find(lessee);
    if (!state_.is_request(member) || !member.working || member.beside) continue;
    state_.lend_beside(member, now);
    out.emplace_back(Lend{lessee});
  }
  const Member* const next = next_batch(there, now);
  if (next && !there.holder) {
    state_.lend(there, *next, now);
    out.emplace_back(Lend{next->lessee});
  } else if (const auto ends = turn_ends(there, now); ends && *ends <= now) {
    there.withdrawn = now;
    out.emplace_back(Withdraw{*there.holder});
  }
}

const Share::Member* Share::next_batch(const Place& place, TimePoint now) const {
  const Member* next = nullptr;
  for (const Lessee lessee : place.lessees) {
    const Member& member = *state_.find(lessee);
    if (state_.is_request(member) || !member.working || place.holder == lessee) continue;
    if (!next || state_.goes_before(member, *next, now)) next = &member;
  }
  return next;
}

// Of the batch lessee that has the device, where another one waits for it.
std::optional<TimePoint> Share::turn_ends(const Place& place, TimePoint now) const {
  const Member* const holder = state_.holder_of(place);
  if (!holder || place.withdrawn || !next_batch(place, now)) return {};
  return holder->working ? place.lent + kTurnLength : holder->since + kMergeGap;
}

std::optional<TimePoint> Share::next(DeviceId device, TimePoint now) const {
  const Place& there = state_.place(device);
  std::optional<TimePoint> next;
  for (const auto& when : {turn_ends(there, now), AwaitedBatch(state_).next(there, now)}) next = earlier(next, when);
  return next ? std::optional(std::max(now, *next)) : std::nullopt;
}

}  // namespace heddle::policy
