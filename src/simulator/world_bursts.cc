// Bursts, and the leases that they need where a device's dispatch is exclusive.

#include <algorithm>

#include "policy/deadline/share.h"
#include "simulator/eager_jobs.h"
#include "simulator/growing_jobs.h"
#include "simulator/host_jobs.h"
#include "simulator/swapped_jobs.h"
#include "simulator/world.h"

namespace heddle::simulator {
namespace {

// Of what fills more than batch's part of the SMs only that part is there at a time.
void keep_to_part(Job& job, uint64_t& warps, const DeviceModel& model, uint32_t percent) {
  const uint64_t most = policy::batch_sms_of(model.sms, percent) * model.max_warps_per_sm();
  if (warps <= most) return;
  job.stretch *= double(warps) / double(most);
  warps = most;
}

}  // namespace

bool World::may_issue(Place& place, JobIndex job) {
  if (!place.dispatch->exclusive()) return true;
  const Lease* lease = place.lease_of(job);
  return lease && !lease->withdrawing;
}

void World::begin_burst(JobIndex index) {
  Job& job = jobs_[index];
  job.begin_piece(draw_busy(job, index, scenario_.seed));
  job.burst = Duration{};
  job.begin_request(now_);
  ++job.bursts;
  GrowingJobs(*this).burst_began(index);
  if (job.swap != Job::Swap::kNone) return SwappedJobs(*this).burst_began(index);
  want_device(index);
}

// For its burst, unless it is away: then behind that.
void World::want_device(JobIndex index) {
  if (GrowingJobs(*this).holds_up(index)) return;
  const Job& job = jobs_[index];
  Place& place = place_of(job);
  if (place.dispatch->exclusive()) {
    place.dispatch->pending(lessee_of(index), now_);
    told(place);
  }
  if (!may_issue(place, index)) return;
  Lease* lease = place.lease_of(index);
  if (lease && lease->whole_bursts && !lease->fresh && now_ + job.longest_burst > lease->until)
    return withdraw(place, *lease);
  go_on(index);
}

// The phase's work goes to the device, unless no worker serves the job.
void World::go_on(JobIndex index) {
  Job& job = jobs_[index];
  if (job.is_away()) return;
  Place& place = place_of(job);
  if (Lease* lease = place.lease_of(index)) {
    lease->fresh = false;
    if (job.resumes)
      return queue_.put({now_ + scenario_.revocation.resume, Event::Kind::kResumed, place.number, lease->number});
  }
  const bool copies = job.phase == Job::Phase::kCopy;
  if (!copies && EagerJobs(*this).waits_for_promotion(index)) return;
  if (!job.issued) job.issued = now_;
  job.stretch = copies ? 1 : EagerJobs(*this).stretch_of(job);
  uint64_t warps = job.warps;
  const bool batch = job.shape->kind == policy::JobClass::kBatch;
  if (bounds_batch_ && batch && !copies) keep_to_part(job, warps, place.model, scenario_.batch_sms);
  place.shared.add(index, copies ? SharedDevice::Kind::kCopy : SharedDevice::Kind::kKernels, job.left, warps, now_,
                   job.stretch);
  watch(place);
}

// What the device says next about what is on it.
void World::watch(Place& place) {
  ++place.version;
  if (const auto next = place.shared.next())
    queue_.put({std::max(now_, next->at), Event::Kind::kWorkDone, place.number, place.version});
}

void World::work_done(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  const Duration busy = place.shared.busy_of(index, now_), copied = place.shared.copied_of(index, now_);
  job.outcome.busy += busy;
  job.sla(outcome_).was_busy(busy);
  show_use(index, busy);
  job.copied += copied;
  job.burst += busy + copied;
  job.left = place.shared.remove(index, now_);
  watch(place);
  const bool taken_back = !may_issue(place, index);
  if (job.left <= Duration::zero() && job.phase == Job::Phase::kCopy) {
    job.phase = Job::Phase::kKernels;
    job.left = job.busy;
    if (!taken_back && job.promotion == Job::Promotion::kNone) return go_on(index);
  }
  if (job.promotion != Job::Promotion::kNone) return EagerJobs(*this).drained(index);
  if (job.left > Duration::zero()) return give_back(place, index);  // the rest waits for the next lease
  burst_over(index);
}

void World::burst_over(JobIndex index) {
  Job& job = jobs_[index];
  Place& place = place_of(job);
  EagerJobs(*this).free_unused(index);
  // Without a pause the ring never runs empty: it goes on as one burst.
  const bool pauses = job.shape->host > Duration::zero() || GrowingJobs::asks_before(job, job.burst_number() + 1);
  if (!pauses && job.bursts_left > 1) {
    --job.bursts_left;
    job.begin_piece(draw_busy(job, index, scenario_.seed));
    return may_issue(place, index) ? go_on(index) : give_back(place, index);
  }
  job.end_request(outcome_, now_);
  job.longest_burst = std::max(job.longest_burst, job.burst);
  job.phase = Job::Phase::kHost;
  if (place.dispatch->exclusive()) {
    tell_service(place, index);
    place.dispatch->drained(lessee_of(index), now_);
    told(place);
    if (const Lease* lease = place.lease_of(index); lease && lease->withdrawing) give_back(place, index);
  }
  if (--job.bursts_left > 0) return HostJobs(*this).pauses(index);
  end_task(index);
}

void World::lend(Place& place, const policy::Lend& order) {
  const JobIndex index = job_of(order.to.session);
  place.leases.push_back({index, ++place.lent, order.until, order.whole_bursts});
  if (order.until != TimePoint::max())
    queue_.put({std::max(now_, order.until), Event::Kind::kLeaseEnds, place.number, place.lent});
  if (jobs_[index].in_burst()) go_on(index);
}

void World::withdraw(Place& place, Lease& lease) {
  if (std::exchange(lease.withdrawing, true)) return;
  const JobIndex index = lease.holder;
  if (!place.shared.has(index)) return give_back(place, index);
  place.drain(index, jobs_[index], scenario_.window, now_);
  watch(place);
}

void World::Place::drain(JobIndex index, const Job& job, Duration window, TimePoint now) {
  if (job.phase != Job::Phase::kKernels) return;
  const Duration in_flight(static_cast<int64_t>(double(window.count()) / (model.slowdown * job.stretch)));
  shared.cut(index, std::max(in_flight, job.kernel()), now);
}

void World::give_back(Place& place, JobIndex holder) {
  tell_service(place, holder);
  if (const Lease* held = place.lease_of(holder); deadlines_ && held && held->revoked)
    jobs_[holder].sla(outcome_).revoked(now_ - *held->revoked, held->terminated);
  // What has drained has committed.
  if (Job& job = jobs_[holder]; job.phase == Job::Phase::kKernels && !job.resumes) job.committed = job.busy - job.left;
  std::erase_if(place.leases, [&](const Lease& lease) { return lease.holder == holder; });
  place.dispatch->returned(lessee_of(holder), now_);
  told(place);
}

void World::tell_service(Place& place, JobIndex index) {
  Job& job = jobs_[index];
  const Duration busy = job.outcome.busy + place.shared.busy_of(index, now_);
  const Duration copied = job.copied + place.shared.copied_of(index, now_);
  policy::Service service;
  service.busy = busy - std::exchange(job.told_busy, busy);
  service.copies = copied - std::exchange(job.told_copied, copied);
  service.bursts = job.bursts - std::exchange(job.told_bursts, job.bursts);
  service.longest_burst = job.longest_burst;
  if (deadlines_ && job.phase == Job::Phase::kKernels && place.shared.has(index)) {
    const Duration done = job.busy - place.shared.left_of(index, now_);
    const double slowdown = place.model.slowdown * job.stretch;
    service.drain = Duration(static_cast<int64_t>(double(std::min(job.kernel(), job.busy - done).count()) * slowdown));
    service.uncommitted = done - job.committed_with(done, scenario_.revocation.epoch);
  }
  place.dispatch->served(lessee_of(index), service, now_);
}

}  // namespace heddle::simulator
