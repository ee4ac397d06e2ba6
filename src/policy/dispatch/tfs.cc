#include "policy/dispatch/tfs.h"

#include <algorithm>

namespace heddle::policy {
namespace {

constexpr Duration kEpoch = std::chrono::milliseconds(100);
constexpr Duration kLeastSlice = std::chrono::milliseconds(5);
constexpr int64_t kMostEpochsOwed = 4;

// `epochs` in a row in which those jobs had work that `worked` says it of.
void give_credit(Lessees& lessees, int64_t epochs) {
  uint64_t all = 0;
  size_t jobs = 0;
  for (const auto& [id, job] : lessees.jobs()) {
    if (!job.worked) continue;
    all += job.weight;
    ++jobs;
  }
  if (jobs < 2) return;
  for (auto& [id, job] : lessees.jobs()) {
    if (!job.worked) continue;
    const double part =
        static_cast<double>(kEpoch.count()) * static_cast<double>(job.weight) / static_cast<double>(all);
    job.balance = std::min(job.balance + part * static_cast<double>(epochs), 2 * part);
  }
}

}  // namespace

const Lessees::Member& Tfs::choose(const Lessees& lessees) {
  const Lessees::Member* best = nullptr;
  double most = 0;
  for (const Lessees::Member& member : lessees.members()) {
    if (!member.waits()) continue;
    const double credit = member.job->balance / static_cast<double>(member.job->weight);
    if (best && (credit < most || (credit == most && member.since >= best->since))) continue;
    best = &member;
    most = credit;
  }
  slice_ = std::clamp(Duration(static_cast<int64_t>(best->job->balance)), kLeastSlice, kEpoch);
  return *best;
}

void Tfs::used(Lessees::Job& job, Duration /*amount*/, Duration contended) {
  job.balance = std::max(job.balance - static_cast<double>(contended.count()),
                         -static_cast<double>(kMostEpochsOwed * kEpoch.count()));
}

void Tfs::advance(Lessees& lessees, TimePoint now) {
  const int64_t epochs = (now - epoch_) / kEpoch;
  if (epochs <= 0) return;
  epoch_ += epochs * kEpoch;
  give_credit(lessees, 1);
  for (auto& [id, job] : lessees.jobs()) job.worked = job.working > 0;
  if (epochs > 1) give_credit(lessees, epochs - 1);
}

}  // namespace heddle::policy
