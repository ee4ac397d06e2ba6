#include "policy/dispatch/token.h"

#include <algorithm>
#include <cmath>

namespace heddle::policy {
namespace {

constexpr Duration kWindow = std::chrono::seconds(10);
constexpr Duration kBase = std::chrono::milliseconds(250);
constexpr Duration kLeastQuota = std::chrono::milliseconds(100);
constexpr Duration kLeastDue = std::chrono::milliseconds(50);
constexpr double kLeastUnrequested = 0.05;  // of the window

double count_of(Duration duration) {
  return static_cast<double>(duration.count());
}
Duration part_of(Duration whole, double part) {
  return std::chrono::duration_cast<Duration>(whole * part);
}
bool unlimited(const Lessees::Job& job) {
  return job.tenant.limit >= 1;
}

}  // namespace

void Token::joined(Lessee lessee, const Tenant& tenant, TimePoint now) {
  lessees_.join(lessee, tenant, now);
}

void Token::left(Lessee lessee, TimePoint now) {
  release(lessee, now);
  lessees_.leave(lessee, now);
  quotas_.erase(lessee);
}

void Token::pending(Lessee lessee, TimePoint now) {
  Lessees::Member* member = lessees_.find(lessee);
  if (!member) return;
  if (!start_) start_ = now;
  if (member->working) return;
  for (Holder& holder : holders_) {
    if (holder.lessee == lessee) count(holder, now);  // a pause between bursts is part of the use
  }
  Quota& quota = quota_of(lessee);
  quota.single = {};
  if (now - member->since > kMergeGap) quota.merged = {};  // its work ended then
  lessees_.begin_work(*member, now);
}

void Token::drained(Lessee lessee, TimePoint now) {
  Lessees::Member* member = lessees_.find(lessee);
  if (!member || !member->working) return;
  count_all(now);
  if (find(lessee)) {
    Quota& quota = quota_of(lessee);
    quota.longest.add(quota.single, now);
    quota.longest_merged.add(quota.merged, now);
  }
  lessees_.end_work(*member, now);
}

void Token::returned(Lessee lessee, TimePoint now) {
  release(lessee, now);
}

void Token::decide(TimePoint now, std::vector<LeaseOrder>& out) {
  count_all(now);
  if (const Holder* holder = current(now)) {
    const auto ends = gives_way(*holder);
    if (!ends || now < *ends) return;
    out.emplace_back(Withdraw{holder->lessee});
    holders_.back().withdrawn = true;
  }
  if (!overlap_ && !holders_.empty()) return;
  if (const Lessees::Member* next = choose(now)) out.emplace_back(lend(*next, now));
}

std::optional<TimePoint> Token::next(TimePoint now) const {
  const auto not_before_now = [&](TimePoint time) { return std::max(time, now); };
  if (const Holder* holder = current(now)) {
    auto next = gives_way(*holder);
    if (overlap_ && anybody_waits()) next = earlier(next, holder->until);
    if (!overlap_ && next && *next >= holder->until) return {};  // its worker stops by itself
    return next ? std::optional(not_before_now(*next)) : next;
  }
  if (!overlap_ && !holders_.empty()) return {};
  if (choose(now)) return now;
  std::optional<TimePoint> next;
  for (const Lessees::Member& member : lessees_.members()) {
    if (!waits(member)) continue;
    next = earlier(next, something_remains(*member.job, now));
  }
  return next ? std::optional(not_before_now(*next)) : next;
}

const Token::Holder* Token::find(Lessee lessee) const {
  const auto is = [&](const Holder& holder) { return holder.lessee == lessee; };
  const auto found = std::find_if(holders_.begin(), holders_.end(), is);
  return found == holders_.end() ? nullptr : &*found;
}

bool Token::anybody_waits() const {
  size_t holders_with_work = 0;
  for (const Holder& holder : holders_) holders_with_work += lessees_.find(holder.lessee)->working;
  return lessees_.working() > holders_with_work;
}

// Tokens are given out one after the other, so only the last of them may still be good.
const Token::Holder* Token::current(TimePoint now) const {
  if (holders_.empty() || holders_.back().withdrawn || now >= holders_.back().until) return nullptr;
  return &holders_.back();
}

Token::Quota& Token::quota_of(Lessee lessee) {
  return quotas_.try_emplace(lessee, Quota{kBase, {}, {}, {}, {}}).first->second;
}

void Token::count(Holder& holder, TimePoint now) {
  Quota& quota = quota_of(holder.lessee);
  quota.single += now - holder.counted;
  quota.merged += now - holder.counted;
  lessees_.find(holder.lessee)->job->had.add(holder.counted, now, static_cast<uint32_t>(holders_.size()));
  holder.counted = now;
}

// A holder without work is only counted if it has some again, with the token still in its hands.
void Token::count_all(TimePoint now) {
  for (Holder& holder : holders_) {
    if (lessees_.find(holder.lessee)->working) count(holder, now);
  }
}

void Token::release(Lessee lessee, TimePoint now) {
  if (!find(lessee)) return;
  count_all(now);
  std::erase_if(holders_, [&](const Holder& holder) { return holder.lessee == lessee; });
  Lessees::Member* member = lessees_.find(lessee);
  if (member->working) member->since = now;  // from here on it waits again
}

Duration Token::elapsed(TimePoint now) const {
  return std::min(kWindow, now - *start_);
}

Token::Standing Token::standing(Lessees::Job& job, TimePoint now) const {
  const double window = count_of(elapsed(now));
  const double usage = job.had.had(now);
  const double requested = job.tenant.request * window;
  return {.usage = usage,
          .remaining = unlimited(job) ? count_of(kWindow) : job.tenant.limit * window - usage,
          .missing = std::max(0.0, requested - usage),
          .part_missing = requested > 0 ? (requested - usage) / requested : 0};
}

const Lessees::Member* Token::choose(TimePoint now) const {
  const Lessees::Member* first = nullptr;
  const Lessees::Member* best = nullptr;
  Standing best_standing;
  const auto goes_before = [&](const Lessees::Member& member, const Standing& standing) {
    const double missing = std::max(0.0, standing.part_missing), other = std::max(0.0, best_standing.part_missing);
    if (missing != other) return missing > other;
    if (standing.usage != best_standing.usage) return standing.usage < best_standing.usage;
    return member.since < best->since;
  };
  for (const Lessees::Member& member : lessees_.members()) {
    if (!waits(member)) continue;
    if (!first || member.since < first->since) first = &member;
    const Standing its = standing(*member.job, now);
    if (its.remaining <= 0 || (best && !goes_before(member, its))) continue;
    best = &member;
    best_standing = its;
  }
  return first && first->job->had.empty() ? first : best;
}

// When the job may be lent the device if it does not have it until then.
TimePoint Token::something_remains(Lessees::Job& job, TimePoint now) const {
  const Standing its = standing(job, now);
  if (its.remaining > 0 || job.had.empty()) return now;
  // While the window still grows, nothing leaves it.
  const Duration enough = part_of(Duration(1), std::ceil(its.usage / job.tenant.limit));
  if (enough < kWindow) return std::max(*start_ + enough, now) + Duration(1);
  return job.had.falls_to(job.tenant.limit * count_of(kWindow) - 1, now);
}

std::optional<TimePoint> Token::gives_way(const Holder& holder) const {
  const Lessees::Member& member = *lessees_.find(holder.lessee);
  if (member.working || (unlimited(*member.job) && !anybody_waits())) return {};
  return member.since + kMergeGap;
}

// What a token is at least while others have work: so that all of them have one in a window, and those that request
// nothing have theirs out of what is left of it.
Duration Token::least_due(const Lessees::Job& job) const {
  double requested = 0;
  int64_t without = 0;
  for (const Lessees::Member& member : lessees_.members()) {
    if (!member.working) continue;
    requested += member.job->tenant.request / member.job->working;
    without += member.job->tenant.request > 0 ? 0 : 1;
  }
  const auto working = static_cast<int64_t>(lessees_.working());
  if (without == working) return std::min(kBase, kWindow / working);
  const double unrequested = std::max(1 - requested, kLeastUnrequested);
  if (job.tenant.request == 0) return std::min(kLeastDue, part_of(kWindow, unrequested) / without);
  const double part =
      std::max(job.tenant.request / static_cast<double>(job.working), unrequested / static_cast<double>(working));
  return std::min(kLeastDue, part_of(kWindow, part));
}

Lend Token::lend(const Lessees::Member& member, TimePoint now) {
  const double limit = std::min(1.0, member.job->tenant.limit);
  Quota& quota = quota_of(member.lessee);
  const Duration burst = quota.longest_merged.value();
  quota.last = burst == Duration{} ? kBase : std::max(kLeastQuota, (burst + quota.last) / 2);
  quota.last = std::min(quota.last, part_of(kWindow, limit));
  const Standing its = standing(*member.job, now);
  const auto cut_to = [&](double most, Duration least) {
    const Duration whole = std::max({Duration(static_cast<int64_t>(most)), least, quota.longest.value()});
    return std::min(quota.last, whole);
  };
  Duration length = cut_to(its.remaining, kLeastDue);
  if (lessees_.working() > 1) length = std::min(length, cut_to(its.missing, least_due(*member.job)));
  const TimePoint until = now + length;
  count_all(now);  // from now on one more shares
  for (Holder& holder : holders_) holder.counted = now;
  quota.single = quota.merged = {};
  holders_.push_back({member.lessee, until, now});
  return {member.lessee, until, true};
}

}  // namespace heddle::policy
