#include "simulator/host_jobs.h"

namespace heddle::simulator {

using Phase = Job::Phase;

void HostJobs::began(JobIndex index) {
  const Duration before = world_.jobs_[index].shape->before;
  before > Duration::zero() ? compute(index, Phase::kBefore, before) : world_.begin_task(index);
}

void HostJobs::tasks_ended(JobIndex index) {
  const Duration behind = world_.jobs_[index].shape->behind;
  behind > Duration::zero() ? compute(index, Phase::kBehind, behind) : end(index);
}

void HostJobs::pauses(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.quiet.reset();
  compute(index, Phase::kHost, job.shape->host);
}

void HostJobs::compute(JobIndex index, Phase phase, Duration length) {
  Job& job = world_.jobs_[index];
  job.phase = phase;
  job.left = length;
  if (!world_.host_.has_limit()) return world_.queue_.put({world_.now_ + length, Event::Kind::kHostDone, index});
  world_.host_.add(index, length, world_.now_);
  watch();
}

void HostJobs::watch() {
  const SharedHost& host = world_.host_;
  if (const auto next = host.next())
    world_.queue_.put({std::max(world_.now_, *next), Event::Kind::kHostStep, 0, host.version()});
}

void HostJobs::stepped(uint64_t version) {
  if (version != world_.host_.version()) return;
  const JobIndex index = world_.host_.take(world_.now_);
  watch();
  done(index);
}

void HostJobs::done(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.computed += job.left;
  if (job.phase == Phase::kBefore) return world_.begin_task(index);
  if (job.phase == Phase::kBehind) return end(index);
  world_.begin_burst(index);
}

void HostJobs::end(JobIndex index) {
  Job& job = world_.jobs_[index];
  ++job.outcome.runs;
  job.outcome.ended = world_.now_;
  job.outcome.turnaround += world_.now_ - job.arrived;
  job.arrived = world_.now_;  // where it repeats
  world_.close(index);
}

}  // namespace heddle::simulator
