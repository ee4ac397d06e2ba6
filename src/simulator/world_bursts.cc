// Bursts, and the leases that they need where a device's dispatch is exclusive.

#include <algorithm>

#include "simulator/world.h"

namespace heddle::simulator {

bool World::may_issue(const Place& place, JobIndex job) const {
  return !place.dispatch->exclusive() || (place.holder == job && !place.withdrawing);
}

void World::begin_burst(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  job.begin_piece();
  job.burst = Duration{};
  ++job.bursts;
  if (place.dispatch->exclusive()) {
    place.dispatch->pending(lessee_of(index), now_);
    told(place);
  }
  if (!may_issue(place, index)) return;
  if (place.whole_bursts && !place.fresh && now_ + job.longest_burst > place.until) return withdraw(place);
  go_on(index);
}

// The phase's work goes to the device.
void World::go_on(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  place.fresh = false;
  const bool copies = job.phase == Job::Phase::kCopy;
  place.shared.add(index, copies ? SharedDevice::Kind::kCopy : SharedDevice::Kind::kKernels, job.left, job.warps, now_);
  watch(place);
}

// What the device says next about what is on it.
void World::watch(Place& place) {
  ++place.version;
  if (const auto next = place.shared.next())
    queue_.put({std::max(now_, next->at), Event::Kind::kWorkDone, index_of(place), place.version});
}

void World::work_done(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  const Duration on = place.shared.busy_of(index, now_);
  job.outcome.busy += on;
  job.burst += on;
  job.left = place.shared.remove(index, now_);
  watch(place);
  const bool taken_back = place.dispatch->exclusive() && place.withdrawing && place.holder == index;
  if (job.left <= Duration::zero() && job.phase == Job::Phase::kCopy) {
    job.phase = Job::Phase::kKernels;
    job.left = job.shape->busy;
    if (!taken_back) return go_on(index);
  }
  if (job.left > Duration::zero()) return give_back(place);  // the rest waits for the next lease
  burst_over(index);
}

void World::burst_over(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  // Without a pause the ring never runs empty: it goes on as one burst.
  if (job.shape->host <= Duration::zero() && job.bursts_left > 1) {
    --job.bursts_left;
    job.begin_piece();
    return may_issue(place, index) ? go_on(index) : give_back(place);
  }
  job.longest_burst = std::max(job.longest_burst, job.burst);
  job.phase = Job::Phase::kHost;
  if (place.dispatch->exclusive()) {
    tell_service(place, index);
    place.dispatch->drained(lessee_of(index), now_);
    told(place);
    if (place.withdrawing && place.holder == index) give_back(place);
  }
  if (--job.bursts_left > 0) return next_burst(index);
  end_task(index);
}

void World::lend(Place& place, const policy::Lend& order) {
  place.holder = job_of(order.to.session);
  place.until = order.until;
  place.whole_bursts = order.whole_bursts;
  place.fresh = true;
  place.withdrawing = false;
  ++place.lease;
  if (order.until != TimePoint::max())
    queue_.put({std::max(now_, order.until), Event::Kind::kLeaseEnds, index_of(place), place.lease});
  if (jobs_[*place.holder].in_burst()) go_on(*place.holder);
}

// The kernel under way ends, and so does what is in flight behind it, which the window bounds; a copy ends.
void World::withdraw(Place& place) {
  if (place.withdrawing) return;
  place.withdrawing = true;
  const JobIndex index = *place.holder;
  const Job& job = jobs_[index];
  if (!place.shared.has(index)) return give_back(place);
  if (job.phase != Job::Phase::kKernels) return;
  const Duration window(static_cast<int64_t>(double(scenario_.window.count()) / place.model.slowdown));
  place.shared.cut(index, std::max(window, job.shape->kernel), now_);
  watch(place);
}

void World::give_back(Place& place) {
  const JobIndex index = *place.holder;
  tell_service(place, index);
  place.holder.reset();
  place.withdrawing = false;
  place.dispatch->returned(lessee_of(index), now_);
  told(place);
}

void World::tell_service(Place& place, JobIndex index) {
  Job& job = jobs_[index];
  const Duration busy = job.outcome.busy + place.shared.busy_of(index, now_);
  policy::Service service;
  service.busy = busy - job.told_busy;
  service.bursts = job.bursts - job.told_bursts;
  service.longest_burst = job.longest_burst;
  job.told_busy = busy;
  job.told_bursts = job.bursts;
  place.dispatch->served(lessee_of(index), service, now_);
}

}  // namespace heddle::simulator
