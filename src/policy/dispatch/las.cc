#include "policy/dispatch/las.h"

#include <cmath>

namespace heddle::policy {
namespace {

constexpr Duration kQuantum = std::chrono::milliseconds(10);
constexpr Duration kHalved = std::chrono::seconds(1);

}  // namespace

const Lessees::Member& Las::choose(const Lessees& lessees) {
  const Lessees::Member* best = nullptr;
  for (const Lessees::Member& member : lessees.members()) {
    if (!member.working) continue;
    if (best && member.job->balance > best->job->balance) continue;
    if (best && member.job->balance == best->job->balance && member.since >= best->since) continue;
    best = &member;
  }
  return *best;
}

Duration Las::slice(const Lessees::Member& /*member*/, const Lessees& /*lessees*/) const {
  return kQuantum;
}

// Those of its own job have attained as much: they take turns with it.
bool Las::goes_on(const Lessees::Member& holder, const Lessees& lessees) const {
  for (const Lessees::Member& member : lessees.members()) {
    if (!member.working || member.lessee == holder.lessee) continue;
    if (member.job == holder.job || member.job->balance < holder.job->balance) return false;
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
