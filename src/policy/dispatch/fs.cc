#include "policy/dispatch/fs.h"

#include <algorithm>

namespace heddle::policy {
namespace {

constexpr Duration kRound = std::chrono::milliseconds(100);
constexpr Duration kLeast = std::chrono::milliseconds(1);

}  // namespace

const Lessees::Member& Fs::choose(const Lessees& lessees) {
  const auto members = lessees.members();
  const auto behind = std::upper_bound(members.begin(), members.end(), last_,
                                       [](Lessee last, const Lessees::Member& member) { return last < member.lessee; });
  const auto waits = [](const Lessees::Member& member) { return member.waits(); };
  auto next = std::find_if(behind, members.end(), waits);
  if (next == members.end()) next = std::find_if(members.begin(), behind, waits);
  last_ = next->lessee;
  return *next;
}

Duration Fs::slice(const Lessees::Member& member, const Lessees& lessees) const {
  // A holder whose work has ended for a moment counts as if he had some.
  const Lessees::Job& job = *member.job;
  const uint64_t all = lessees.working_weight() + (job.working > 0 ? 0 : job.weight);
  const double part = static_cast<double>(job.weight) / static_cast<double>(all);
  const Duration of_job = std::chrono::duration_cast<Duration>(kRound * part);
  return std::max(kLeast, of_job / std::max(1u, job.working));
}

}  // namespace heddle::policy
