#include "simulator/idle_jobs.h"

#include <algorithm>

#include "policy/occupancy.h"
#include "policy/swapping.h"
#include "simulator/eager_jobs.h"

namespace heddle::simulator {
namespace {

using Swap = Job::Swap;

}  // namespace

// One look at a time: what is leaving may be enough.
bool IdleJobs::make_room() {
  if (world_.scenario_.swap.host.value == 0 || world_.scenario_.swap.idle <= Duration::zero()) return false;
  if (world_.leaving_ > 0) return true;
  if (!policy::Swapping::anybody_waits(*world_.scheduler_) || !is_due()) return false;
  const auto chosen =
      policy::Swapping::who_makes_room(*world_.scheduler_, look(), world_.now_ - world_.scenario_.swap.idle);
  for (const TaskId task : chosen) {
    const JobIndex job = world_.tasks_.at(task);
    // The one before it may have taken the space.
    if (has_space_for(world_.jobs_[job])) leave(job);
  }
  return world_.leaving_ > 0;
}

// Once in [swap] idle while somebody waits, and for as long as anything else is to happen: who waits for nothing would
// be looked at for ever.
bool IdleJobs::is_due() {
  const bool is = world_.now_ >= world_.next_look_;
  if (is) world_.next_look_ = world_.now_ + world_.scenario_.swap.idle;
  if (world_.alarm_ != world_.next_look_ && !world_.queue_.empty()) {
    world_.alarm_ = world_.next_look_;
    world_.queue_.put({world_.next_look_, Event::Kind::kSchedule});
  }
  return is;
}

// As heddled, which sees at a look whether anything was done since the last one.
std::vector<TaskId> IdleJobs::look() {
  std::vector<TaskId> idle;
  const Duration wanted = world_.scenario_.swap.idle;
  for (const auto& [task, index] : world_.tasks_) {
    Job& job = world_.jobs_[index];
    if (job.phase != Job::Phase::kHost || job.swap != Swap::kNone || job.promotion != Job::Promotion::kNone) continue;
    if (!job.quiet) job.quiet = world_.now_;
    const bool stayed = !job.came_back || policy::may_leave_again(world_.now_ - *job.came_back, job.swap_took, wanted);
    if (world_.now_ - *job.quiet >= wanted && stayed && has_space_for(job)) idle.push_back(task);
  }
  std::sort(idle.begin(), idle.end());
  return idle;
}

bool IdleJobs::has_space_for(const Job& job) const {
  return EagerJobs::bytes_on_device(job) <= world_.scenario_.swap.host - world_.swapped_;
}

void IdleJobs::leave(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  ++world_.leaving_;
  job.swap = Swap::kOut;
  if (place.lease_of(index)) world_.give_back(place, index);
  const Bytes bytes = EagerJobs::bytes_on_device(job);
  world_.swapped_ += bytes;
  begin_copy(index, bytes);
}

void IdleJobs::begin_copy(JobIndex index, Bytes bytes) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  job.copies_since = world_.now_;
  place.shared.add(index | kCopy, SharedDevice::Kind::kCopy, EagerJobs::copy_time(bytes, place.model), 1, world_.now_);
  world_.watch(place);
}

void IdleJobs::end_copy(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  (void)place.shared.remove(index | kCopy, world_.now_);
  world_.watch(place);
  job.outcome.swap.moving += world_.now_ - job.copies_since;
}

void IdleJobs::burst_began(JobIndex index) {
  Job& job = world_.jobs_[index];
  world_.books_changed_ = true;
  if (job.swap == Swap::kOut) {
    --world_.leaving_;
    end_copy(index);
    world_.swapped_ -= EagerJobs::bytes_on_device(job);
    job.came_back = world_.now_;
    job.swap = Swap::kResuming;
    world_.queue_.put({world_.now_ + world_.scenario_.revocation.resume, Event::Kind::kReturned, index});
    return;
  }
  job.swap = Swap::kWaiting;
  job.waits_since = world_.now_;
  ++world_.use_.waiting;
  world_.wait_for_device(index);
  world_.scheduler_->resume_requested(job.task, world_.now_);
}

void IdleJobs::copied(JobIndex index) {
  Job& job = world_.jobs_[index];
  end_copy(index);
  if (job.swap == Swap::kOut) return left(index);
  const Bytes bytes = EagerJobs::bytes_on_device(job);
  job.outcome.swap.moved += bytes;
  world_.swapped_ -= bytes;
  job.came_back = world_.now_;
  job.swap_took += world_.now_ - job.granted;
  job.swap = Swap::kResuming;
  world_.queue_.put({world_.now_ + world_.scenario_.revocation.resume, Event::Kind::kReturned, index});
}

// Its account with the device is closed. It comes back with all of its memory on a device.
void IdleJobs::left(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  --world_.leaving_;
  world_.show_stay(index);
  ++job.outcome.swap.count;
  job.outcome.swap.moved += EagerJobs::bytes_on_device(job);
  EagerJobs(world_).all_on_device(index);
  if (place.dispatch->exclusive()) {
    place.dispatch->left(world_.lessee_of(index), world_.now_);
    world_.told(place);
  }
  world_.scheduler_->served(job.session, job.device, job.take_service());
  world_.scheduler_->swapped_out(job.task, world_.now_);
  --world_.use_.tasks;
  world_.use_.warps -= job.warps;
  job.swap_took = world_.now_ - job.copies_since;
  job.swap = Swap::kSwapped;
  world_.books_changed_ = true;
}

void IdleJobs::device_found(JobIndex index, DeviceId device) {
  Job& job = world_.jobs_[index];
  job.granted = world_.now_;
  job.device = device;
  job.swap = Swap::kIn;
  World::Place& place = world_.place_of(job);
  job.warps = policy::resident(job.shape->need, world_.specs_[device.value]).warps;
  ++world_.use_.tasks;
  world_.use_.warps += job.warps;
  if (place.dispatch->exclusive()) {
    place.dispatch->joined(world_.lessee_of(index), job.tenant(), world_.now_);
    world_.told(place);
  }
  begin_copy(index, EagerJobs::bytes_on_device(job));
}

void IdleJobs::resumed(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.swap = Swap::kNone;
  World::Place& place = world_.place_of(job);
  if (place.dispatch->exclusive()) {
    place.dispatch->pending(world_.lessee_of(index), world_.now_);
    world_.told(place);
  }
  if (world_.may_issue(place, index)) world_.go_on(index);
}

}  // namespace heddle::simulator
