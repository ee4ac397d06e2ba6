#include "simulator/outcome.h"

#include <algorithm>

namespace heddle::simulator {
namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double mean_run(const JobOutcome& job) {
  return seconds(job.turnaround) / job.runs;
}

}  // namespace

EagerUse& EagerUse::operator+=(const EagerUse& other) {
  launches += other.launches;
  on_host += other.on_host;
  promotions += other.promotions;
  promoted += other.promoted;
  moving += other.moving;
  return *this;
}

SwapUse& SwapUse::operator+=(const SwapUse& other) {
  count += other.count;
  deadlocks += other.deadlocks;
  moved += other.moved;
  moving += other.moving;
  return *this;
}

SwapUse Outcome::swap() const {
  SwapUse sum;
  for (const JobOutcome& job : jobs) sum += job.swap;
  return sum;
}

EagerUse Outcome::eager() const {
  EagerUse sum;
  for (const JobOutcome& job : jobs) sum += job.eager;
  return sum;
}

uint64_t Outcome::completed() const {
  uint64_t runs = 0;
  for (const JobOutcome& job : jobs) runs += job.runs;
  return runs;
}

double Outcome::runs_per_second() const {
  return makespan > Duration::zero() ? double(completed()) / seconds(makespan) : 0;
}

Duration Outcome::mean_turnaround() const {
  double sum = 0;  // nanoseconds: of a million jobs more than a Duration holds
  for (const JobOutcome& job : jobs) sum += static_cast<double>(job.turnaround.count());
  const auto runs = static_cast<double>(completed());
  return runs == 0 ? Duration{} : Duration(static_cast<int64_t>(sum / runs));
}

double jain_index(const Outcome& outcome, const std::vector<double>& weights) {
  double sum = 0, squares = 0;
  for (const JobOutcome& job : outcome.jobs) {
    const double share = seconds(job.busy) / weights[job.line];
    sum += share;
    squares += share * share;
  }
  return squares == 0 ? 1 : sum * sum / (double(outcome.jobs.size()) * squares);
}

double weighted_speedup(const Outcome& outcome, const Outcome& base) {
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < std::min(outcome.jobs.size(), base.jobs.size()); ++i) {
    const JobOutcome &job = outcome.jobs[i], &before = base.jobs[i];
    if (job.runs == 0 || before.runs == 0) continue;
    sum += mean_run(before) / mean_run(job);
    ++count;
  }
  return count == 0 ? 0 : sum / double(count);
}

}  // namespace heddle::simulator
