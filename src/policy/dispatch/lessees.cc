#include "policy/dispatch/lessees.h"

#include <algorithm>
#include <cmath>

namespace heddle::policy {
namespace {

constexpr Duration kRemembered = std::chrono::seconds(10);

uint64_t in_thousandths(double weight) {
  return static_cast<uint64_t>(std::llround(std::clamp(weight * 1000, 1.0, 1e12)));
}

}  // namespace

void Lessees::join(Lessee lessee, const Tenant& tenant, TimePoint now) {
  if (find(lessee)) return;
  std::erase_if(jobs_, [&](const auto& entry) {
    return entry.second.lessees == 0 && now - entry.second.emptied >= kRemembered && entry.first != tenant.job;
  });
  const auto [entry, fresh] = jobs_.try_emplace(tenant.job);
  Job& job = entry->second;
  if (!fresh && job.lessees == 0 && now - job.emptied >= kRemembered) job = Job();
  job.tenant = tenant;
  if (job.working == 0) job.weight = in_thousandths(tenant.weight);
  ++job.lessees;
  const auto place = std::lower_bound(members_.begin(), members_.end(), lessee,
                                      [](const Member& member, Lessee other) { return member.lessee < other; });
  members_.insert(place, {lessee, &job, false, false, now});
}

void Lessees::leave(Lessee lessee, TimePoint now) {
  Member* member = find(lessee);
  if (!member) return;
  if (member->working) count_out(*member);
  if (--member->job->lessees == 0) member->job->emptied = now;
  members_.erase(members_.begin() + (member - members_.data()));
}

Lessees::Member* Lessees::find(Lessee lessee) {
  const auto place = std::lower_bound(members_.begin(), members_.end(), lessee,
                                      [](const Member& member, Lessee other) { return member.lessee < other; });
  return place != members_.end() && place->lessee == lessee ? &*place : nullptr;
}

void Lessees::begin_work(Member& member, TimePoint now) {
  if (member.working) return;
  member.working = true;
  member.since = now;
  member.job->worked = true;
  ++working_;
  if (!member.holds) ++waiting_;
  if (member.job->working++ > 0) return;
  ++working_jobs_;
  working_weight_ += member.job->weight;
}

void Lessees::end_work(Member& member, TimePoint now) {
  if (!member.working) return;
  count_out(member);
  member.since = now;
}

void Lessees::lease_lent(Member& member) {
  if (member.waits()) --waiting_;
  member.holds = true;
}

void Lessees::lease_returned(Member& member) {
  member.holds = false;
  if (member.waits()) ++waiting_;
}

void Lessees::count_out(Member& member) {
  member.working = false;
  --working_;
  if (!member.holds) --waiting_;
  if (--member.job->working > 0) return;
  --working_jobs_;
  working_weight_ -= member.job->weight;
}

}  // namespace heddle::policy
