// Jobs: from their arrival to their end.

#include "policy/learning.h"
#include "policy/occupancy.h"
#include "simulator/eager_jobs.h"
#include "simulator/growing_jobs.h"
#include "simulator/host_jobs.h"
#include "simulator/swapped_jobs.h"
#include "simulator/world.h"

namespace heddle::simulator {

void World::arrive(JobIndex job) {
  jobs_[job].arrived = now_;
  if (admission_) {
    ask_admission_ = true;
    return line_.push_back(job);
  }
  if (scenario_.workers.most > 0 && open_ >= scenario_.workers.most) return line_.push_back(job);
  open(job);
}

void World::open(JobIndex index) {
  Job& job = jobs_[index];
  ++open_;
  outcome_.most_at_once = std::max(outcome_.most_at_once, open_);
  job.session = SessionId{owners_.size()};
  owners_.push_back(index);
  job.tasks_left = job.shape->tasks;
  const std::string model = job.shape->model.empty() ? scenario_.devices.front().model : job.shape->model;
  scheduler_->session_opened(job.session, JobId{job.session.value}, model, Bytes{}, now_, {}, job.shape->app);
  HostJobs(*this).began(index);
}

void World::begin_task(JobIndex index) {
  Job& job = jobs_[index];
  job.phase = Job::Phase::kWaiting;
  ++use_.waiting;
  job.waits_since = now_;
  job.task = TaskId{++last_task_};
  tasks_[job.task] = index;
  policy::TaskRequest request;
  request.id = job.task;
  request.session = job.session;
  request.job = JobId{job.session.value};
  request.memory = job.shape->memory;
  request.compute = job.shape->need;
  wait_for_device(index);
  scheduler_->task_arrived(request, now_);
  books_changed_ = true;
}

void World::carry_out(const policy::Decision& decision) {
  const auto found = tasks_.find(decision.task);
  if (found == tasks_.end()) return;
  const JobIndex index = found->second;
  Job& job = jobs_[index];
  if (decision.kind == policy::Decision::Kind::kLeave) return GrowingJobs(*this).told_to_leave(index);
  if (decision.request == policy::RequestKind::kExtension) {
    const bool refused = decision.kind == policy::Decision::Kind::kRefuse;
    return refused ? GrowingJobs(*this).refused(index, decision.reason) : GrowingJobs(*this).extended(index);
  }
  job.outcome.waited += now_ - job.waits_since;
  --use_.waiting;
  if (decision.kind == policy::Decision::Kind::kRefuse) {
    job.outcome.refused = decision.reason;
    if (decision.request == policy::RequestKind::kResume) SwappedJobs(*this).refused(index);
    tasks_.erase(found);
    if (gates_) deadlines_->waits_no_longer(lessee_of(index));
    if (job.shape->kind == policy::JobClass::kUserFacing) outcome_.user_facing.request_missed();
    job.request.reset();
    return close(index);
  }
  if (decision.request == policy::RequestKind::kResume) return SwappedJobs(*this).device_found(index, decision.device);
  job.granted = now_;
  if (!job.outcome.granted) job.outcome.granted = now_;
  job.device = decision.device;
  Place& place = place_of(job);
  job.warps = policy::resident(job.shape->need, specs_[decision.device.value]).warps;
  EagerJobs(*this).granted(index, decision.on_host);
  ++use_.tasks;
  use_.warps += job.warps;
  job.bursts_left = job.shape->bursts;
  job.told_busy = job.busy_before = job.outcome.busy;
  job.told_copied = job.copied_before = job.copied;
  job.bursts = job.told_bursts = 0;
  job.longest_burst = Duration{};
  if (place.dispatch->exclusive()) {
    place.dispatch->joined(lessee_of(index), job.tenant(), now_);
    place.dispatch->ready(lessee_of(index), now_);
    told(place);
  }
  HostJobs(*this).pauses(index);
}

// Or leaves it, where memory that it asked for was refused.
void World::end_task(JobIndex index) {
  show_stay(index);
  Job& job = jobs_[index];
  Place& place = place_of(job);
  if (place.dispatch->exclusive()) {
    std::erase_if(place.leases, [&](const Lease& lease) { return lease.holder == index; });
    place.dispatch->left(lessee_of(index), now_);
    told(place);
  }
  EagerJobs(*this).task_ended(index);
  tasks_.erase(job.task);
  scheduler_->served(job.session, job.device, job.take_service());
  scheduler_->task_ended(job.task, now_);
  --use_.tasks;
  use_.warps -= job.warps;
  job.grown = {};
  books_changed_ = true;
  if (!job.outcome.refused.empty()) return close(index);
  if (--job.tasks_left > 0) return begin_task(index);
  HostJobs(*this).tasks_ended(index);
}

void World::close(JobIndex index) {
  Job& job = jobs_[index];
  job.phase = Job::Phase::kAway;
  const Duration computed = std::exchange(job.computed, Duration::zero());
  if (policy::Learning::history(*scheduler_)) scheduler_->computed(job.session, computed);
  scheduler_->session_closed(job.session, now_);
  books_changed_ = true;
  --open_;
  if (scenario_.jobs[job.outcome.line].repeats && job.outcome.refused.empty()) line_.push_back(index);
  if (admission_) {
    ask_admission_ = true;
    return admission_->ended(JobId{job.session.value});
  }
  if (line_.empty()) return;
  const JobIndex next = line_.front();
  line_.pop_front();
  open(next);
}

}  // namespace heddle::simulator
