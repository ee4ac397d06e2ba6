#include "policy/dispatch/las.h"

#include <cmath>

namespace heddle::policy {
namespace {

constexpr Duration kQuantum = std::chrono::milliseconds(10);
constexpr Duration kHalved = std::chrono::seconds(1);

// Those of one job have attained as much: who waits takes turns with who has the device.
bool goes_before(const Lessees::Member& member, const Lessees::Member& holder) {
  if (member.job->balance != holder.job->balance) return member.job->balance < holder.job->balance;
  return member.holds ? member.lessee < holder.lessee : member.job == holder.job;
}

}  // namespace

const Lessees::Member& Las::choose(const Lessees& lessees) {
  const Lessees::Member* best = nullptr;
  for (const Lessees::Member& member : lessees.members()) {
    if (!member.waits()) continue;
    if (best && member.job->balance > best->job->balance) continue;
    if (best && member.job->balance == best->job->balance && member.since >= best->since) continue;
    best = &member;
  }
  return *best;
}

Duration Las::slice(const Lessees::Member& /*member*/, const Lessees& /*lessees*/) const {
  return kQuantum;
}

// As long as it is among those that have attained least, as many as may have the device: so of those whose quantum is
// over no more are withdrawn than others go before.
bool Las::goes_on(const Lessees::Member& holder, const Lessees& lessees) const {
  size_t before = 0;
  for (const Lessees::Member& member : lessees.members()) {
    if (!member.working || member.lessee == holder.lessee || !goes_before(member, holder)) continue;
    if (++before == most()) return false;
  }
  return true;
}

void Las::used(Lessees::Job& job, Duration amount, Duration /*contended*/) {
  job.balance += static_cast<double>(amount.count());
}

void Las::advance(Lessees& lessees, TimePoint now) {
  const int64_t times = (now - faded_) / kHalved;
  if (times <= 0) return;
  faded_ += times * kHalved;
  for (auto& [id, job] : lessees.jobs())
    job.balance = std::ldexp(job.balance, -static_cast<int>(std::min(times, int64_t{1000})));
}

}  // namespace heddle::policy
