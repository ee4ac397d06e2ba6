#include "simulator/swapped_jobs.h"

#include <algorithm>

#include "policy/occupancy.h"
#include "policy/swapping.h"
#include "simulator/eager_jobs.h"

namespace heddle::simulator {
namespace {

using Swap = Job::Swap;

}  // namespace

// One look at a time: what is leaving may be enough.
bool SwappedJobs::make_room() {
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
bool SwappedJobs::is_due() {
  const bool is = world_.now_ >= world_.next_look_;
  if (is) world_.next_look_ = world_.now_ + world_.scenario_.swap.idle;
  if (world_.alarm_ != world_.next_look_ && !world_.queue_.empty()) {
    world_.alarm_ = world_.next_look_;
    world_.queue_.put({world_.next_look_, Event::Kind::kSchedule});
  }
  return is;
}

// As heddled, which sees at a look whether anything was done since the last one.
std::vector<TaskId> SwappedJobs::look() {
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

bool SwappedJobs::has_space_for(const Job& job) const {
  return EagerJobs::bytes_on_device(job) <= world_.scenario_.swap.host - world_.swapped_;
}

void SwappedJobs::leave(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  ++world_.leaving_;
  job.swap = Swap::kOut;
  if (place.lease_of(index)) world_.give_back(place, index);
  const Bytes bytes = EagerJobs::bytes_on_device(job);
  world_.swapped_ += bytes;
  begin_copy(index, bytes);
}

void SwappedJobs::begin_copy(JobIndex index, Bytes bytes) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  job.copies_since = world_.now_;
  job.moving = bytes;
  place.shared.add(index | kCopy, SharedDevice::Kind::kCopy, EagerJobs::copy_time(bytes, place.model), 1, world_.now_);
  world_.watch(place);
}

void SwappedJobs::end_copy(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  (void)place.shared.remove(index | kCopy, world_.now_);
  world_.watch(place);
  job.outcome.swap.moving += world_.now_ - job.copies_since;
}

void SwappedJobs::burst_began(JobIndex index) {
  Job& job = world_.jobs_[index];
  world_.books_changed_ = true;
  if (job.swap == Swap::kOut) {
    --world_.leaving_;
    end_copy(index);
    world_.swapped_ -= job.moving;
    job.came_back = world_.now_;
    job.swap = Swap::kResuming;
    world_.queue_.put({world_.now_ + world_.scenario_.revocation.resume, Event::Kind::kReturned, index});
    return;
  }
  want_back(index);
}

void SwappedJobs::want_back(JobIndex index) {
  Job& job = world_.jobs_[index];
  if (job.asked) job.outcome.waited += world_.now_ - *std::exchange(job.asked, std::nullopt);
  job.swap = Swap::kWaiting;
  job.waits_since = world_.now_;
  ++world_.use_.waiting;
  world_.wait_for_device(index);
  world_.scheduler_->resume_requested(job.task, world_.now_);
}

void SwappedJobs::copied(JobIndex index) {
  Job& job = world_.jobs_[index];
  end_copy(index);
  if (job.swap == Swap::kOut) return left(index);
  job.outcome.swap.moved += job.moving;
  world_.swapped_ -= job.moving;
  job.came_back = world_.now_;
  job.swap_took += world_.now_ - job.granted;
  job.swap = Swap::kResuming;
  world_.queue_.put({world_.now_ + world_.scenario_.revocation.resume, Event::Kind::kReturned, index});
}

// Its account with the device is closed. It comes back with all of its memory on a device, and with what it was granted
// on its way out, in which there is nothing yet.
void SwappedJobs::left(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  --world_.leaving_;
  world_.show_stay(index);
  ++job.outcome.swap.count;
  job.outcome.swap.moved += job.moving;
  world_.swapped_ += EagerJobs::bytes_on_device(job) - job.moving;
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
  if (job.in_burst()) want_back(index);
}

void SwappedJobs::device_found(JobIndex index, DeviceId device) {
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

void SwappedJobs::refused(JobIndex index) {
  Job& job = world_.jobs_[index];
  world_.swapped_ -= EagerJobs::bytes_on_device(job);
  job.swap = Swap::kNone;
  job.asks = false;
}

void SwappedJobs::resumed(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.swap = Swap::kNone;
  world_.place_of(job).dispatch->ready(world_.lessee_of(index), world_.now_);
  world_.want_device(index);
}

}  // namespace heddle::simulator
