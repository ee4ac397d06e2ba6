#include "policy/dispatch/turn_taking.h"

#include <algorithm>

namespace heddle::policy {

void TurnTaking::joined(Lessee lessee, const Tenant& tenant, TimePoint now) {
  pass(now);
  lessees_.join(lessee, tenant, now);
}

void TurnTaking::left(Lessee lessee, TimePoint now) {
  pass(now);
  lease_over(lessee, now);
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
  if (Holder* holder = find_holder(lessee)) return charge(*holder, since_last, now);
  const Duration late = since_last.busy + since_last.copies;
  if (late > Duration{}) used(*member->job, late, late);
}

void TurnTaking::returned(Lessee lessee, TimePoint now) {
  pass(now);
  if (!find_holder(lessee)) return;
  lease_over(lessee, now);
  Lessees::Member* member = lessees_.find(lessee);
  if (member->working) member->since = now;  // from here on it waits again
}

void TurnTaking::decide(TimePoint now, std::vector<LeaseOrder>& out) {
  pass(now);
  while (holders_.size() < most_ && lessees_.waiting() > 0) lend(now, out);
  if (lessees_.waiting() == 0) return;
  for (Holder& holder : holders_) {
    if (!is_held(holder, now) || now < turn_ends(holder)) continue;
    const Lessees::Member& member = *lessees_.find(holder.lessee);
    if (member.working && goes_on(member, lessees_)) {
      holder.turn = now;
      continue;
    }
    holder.withdrawn = true;
    out.emplace_back(Withdraw{holder.lessee});
  }
}

std::optional<TimePoint> TurnTaking::next(TimePoint now) const {
  if (lessees_.waiting() == 0) return {};
  if (holders_.size() < most_) return now;
  std::optional<TimePoint> next;
  for (const Holder& holder : holders_) {
    if (!is_held(holder, now)) continue;
    const TimePoint ends = turn_ends(holder);
    if (ends >= holder.until) continue;  // its worker stops by itself
    next = earlier(next, std::max(now, ends));
  }
  return next;
}

void TurnTaking::pass(TimePoint now) {
  const Duration passed = now - seen_;
  for (Holder& holder : holders_) {
    if (passed <= Duration{}) break;
    if (lessees_.find(holder.lessee)->working) holder.working += passed;
    if (lessees_.working_jobs() > 1) holder.contended += passed;
  }
  advance(lessees_, now);
  seen_ = now;
}

void TurnTaking::charge(Holder& holder, const Service& more, TimePoint now) {
  holder.measured += more.busy + more.copies;
  const Duration used_so_far =
      std::max({std::min(holder.measured, now - holder.since), holder.working / 2, holder.charged});
  const Duration amount = used_so_far - holder.charged;
  if (amount == Duration{}) return;
  holder.charged = used_so_far;
  const Duration contended = std::min(amount, holder.contended);
  holder.contended -= contended;  // the rest: for what is measured late
  used(*lessees_.find(holder.lessee)->job, amount, contended);
}

TurnTaking::Holder* TurnTaking::find_holder(Lessee lessee) {
  const auto found =
      std::find_if(holders_.begin(), holders_.end(), [&](const Holder& each) { return each.lessee == lessee; });
  return found == holders_.end() ? nullptr : &*found;
}

void TurnTaking::lease_over(Lessee lessee, TimePoint now) {
  Holder* holder = find_holder(lessee);
  if (!holder) return;
  charge(*holder, {}, now);
  holders_.erase(holders_.begin() + (holder - holders_.data()));
  lessees_.lease_returned(*lessees_.find(lessee));
}

TimePoint TurnTaking::turn_ends(const Holder& holder) const {
  const Lessees::Member& member = *lessees_.find(holder.lessee);
  const TimePoint slice_ends = holder.turn + slice(member, lessees_);
  return member.working ? slice_ends : std::min(slice_ends, member.since + kMergeGap);
}

void TurnTaking::lend(TimePoint now, std::vector<LeaseOrder>& out) {
  const Lessees::Member& next = choose(lessees_);
  Holder& holder = holders_.emplace_back(Holder{next.lessee, now, now, TimePoint::max()});
  lessees_.lease_lent(*lessees_.find(next.lessee));
  if (lessees_.waiting() > 0 && !may_go_on()) holder.until = now + slice(next, lessees_);
  out.emplace_back(Lend{next.lessee, holder.until});
}

}  // namespace heddle::policy
