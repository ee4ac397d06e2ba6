#include "policy/dispatch/turn_taking.h"

#include <algorithm>

namespace heddle::policy {

void TurnTaking::joined(Lessee lessee, const Tenant& tenant, TimePoint now) {
  pass(now);
  lessees_.join(lessee, tenant, now);
}

void TurnTaking::left(Lessee lessee, TimePoint now) {
  pass(now);
  if (holds(lessee)) {
    charge({}, now);
    holder_.reset();
  }
  lessees_.leave(lessee, now);
}

void TurnTaking::pending(Lessee lessee, TimePoint now) {
  pass(now);
  if (Lessees::Member* member = lessees_.find(lessee)) lessees_.begin_work(*member, now);
}

void TurnTaking::drained(Lessee lessee, TimePoint now) {
  pass(now);
  if (Lessees::Member* member = lessees_.find(lessee)) lessees_.end_work(*member, now);
}

void TurnTaking::served(Lessee lessee, const Service& since_last, TimePoint now) {
  pass(now);
  Lessees::Member* member = lessees_.find(lessee);
  if (!member) return;
  if (holds(lessee)) return charge(since_last, now);
  const Duration late = since_last.busy + since_last.copies;
  if (late > Duration{}) used(*member->job, late, late);
}

void TurnTaking::returned(Lessee lessee, TimePoint now) {
  pass(now);
  if (!holds(lessee)) return;
  charge({}, now);
  holder_.reset();
  Lessees::Member* member = lessees_.find(lessee);
  if (member->working) member->since = now;  // from here on it waits again
}

void TurnTaking::decide(TimePoint now, std::vector<LeaseOrder>& out) {
  pass(now);
  if (!holder_) {
    if (lessees_.working() > 0) lend(now, out);
    return;
  }
  if (holder_->withdrawn || now >= holder_->until || !others_wait() || now < turn_ends()) return;
  const Lessees::Member& member = *lessees_.find(holder_->lessee);
  if (member.working && goes_on(member, lessees_)) {
    holder_->turn = now;
    return;
  }
  holder_->withdrawn = true;
  out.emplace_back(Withdraw{holder_->lessee});
}

std::optional<TimePoint> TurnTaking::next(TimePoint now) const {
  if (!holder_) return lessees_.working() > 0 ? std::optional(now) : std::nullopt;
  if (holder_->withdrawn || now >= holder_->until || !others_wait()) return {};
  const TimePoint ends = turn_ends();
  if (ends >= holder_->until) return {};  // its worker stops by itself
  return std::max(now, ends);
}

void TurnTaking::pass(TimePoint now) {
  const Duration passed = now - seen_;
  if (holder_ && passed > Duration{}) {
    if (lessees_.find(holder_->lessee)->working) holder_->working += passed;
    if (lessees_.working_jobs() > 1) holder_->contended += passed;
  }
  advance(lessees_, now);
  seen_ = now;
}

// Of the holder.
void TurnTaking::charge(const Service& more, TimePoint now) {
  holder_->measured += more.busy + more.copies;
  const Duration used_so_far =
      std::max({std::min(holder_->measured, now - holder_->since), holder_->working / 2, holder_->charged});
  const Duration amount = used_so_far - holder_->charged;
  if (amount == Duration{}) return;
  holder_->charged = used_so_far;
  const Duration contended = std::min(amount, holder_->contended);
  holder_->contended -= contended;  // the rest: for what is measured late
  used(*lessees_.find(holder_->lessee)->job, amount, contended);
}

bool TurnTaking::others_wait() const {
  const bool holder_works = lessees_.find(holder_->lessee)->working;
  return lessees_.working() > (holder_works ? 1 : 0);
}

TimePoint TurnTaking::turn_ends() const {
  const Lessees::Member& member = *lessees_.find(holder_->lessee);
  const TimePoint slice_ends = holder_->turn + slice(member, lessees_);
  return member.working ? slice_ends : std::min(slice_ends, member.since + kMergeGap);
}

void TurnTaking::lend(TimePoint now, std::vector<LeaseOrder>& out) {
  const Lessees::Member& next = choose(lessees_);
  holder_ = Holder{next.lessee, now, now, TimePoint::max()};
  if (lessees_.working() > 1 && !may_go_on()) holder_->until = now + slice(next, lessees_);
  out.emplace_back(Lend{next.lessee, holder_->until});
}

}  // namespace heddle::policy
