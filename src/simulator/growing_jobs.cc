#include "simulator/growing_jobs.h"

#include "simulator/swapped_jobs.h"

namespace heddle::simulator {
namespace {

bool has_no_worker(const Job& job) {
  return job.promotion != Job::Promotion::kNone || job.swap != Job::Swap::kNone;
}

}  // namespace

bool GrowingJobs::asks_before(const Job& job, uint32_t burst) {
  return job.shape->more.value > 0 && job.shape->more_at == burst;
}

void GrowingJobs::burst_began(JobIndex index) {
  Job& job = world_.jobs_[index];
  if (!asks_before(job, job.burst_number())) return;
  job.asks = true;
  job.asked = world_.now_;
  world_.scheduler_->extension_requested(job.task, job.shape->more, world_.now_);
  world_.books_changed_ = true;
}

void GrowingJobs::extended(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.end_asking(world_.now_);
  job.grown = job.shape->more;
  world_.want_device(index);
}

void GrowingJobs::refused(JobIndex index, const std::string& reason) {
  Job& job = world_.jobs_[index];
  job.outcome.refused = reason;
  if (has_no_worker(job)) return;
  job.end_asking(world_.now_);
  if (job.shape->kind == policy::JobClass::kUserFacing) world_.outcome_.user_facing.request_missed();
  job.request.reset();
  world_.end_task(index);
}

void GrowingJobs::told_to_leave(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.to_leave = true;
  if (!has_no_worker(job)) leave(index);
}

bool GrowingJobs::holds_up(JobIndex index) {
  const Job& job = world_.jobs_[index];
  if (has_no_worker(job)) return true;
  const bool ends = !job.outcome.refused.empty();
  if (ends) {
    refused(index, job.outcome.refused);
  } else if (job.to_leave) {
    leave(index);
  }
  return ends || job.is_away();
}

// Where the swap space has no place for it, another one of the deadlock leaves, or a request is refused.
void GrowingJobs::leave(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.to_leave = false;
  if (SwappedJobs(world_).has_space_for(job)) {
    ++job.outcome.swap.deadlocks;
    return SwappedJobs(world_).leave(index);
  }
  world_.scheduler_->stays(job.task, "its memory has no place in swap space", world_.now_);
  world_.books_changed_ = true;
}

}  // namespace heddle::simulator
