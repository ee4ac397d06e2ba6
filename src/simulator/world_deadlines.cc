// Classes of jobs, requests and their SLOs, and leases that are taken back by force.

#include "policy/dispatch/table.h"
#include "policy/record/recorded_dispatch.h"
#include "simulator/world.h"

namespace heddle::simulator {

Status World::build_dispatch(InputLog* log) {
  const auto entry = policy::find_dispatch(scenario_.dispatch);
  if (!entry) return tl::unexpected(entry.error());
  if ((*entry)->deadline && log)
    return fail(ErrorCode::kInvalidArgument,
                "an input log has no lines for what deadline policies are told: leave out --log, or take another "
                "dispatch policy than %s",
                scenario_.dispatch.c_str());
  bounds_batch_ = (*entry)->bounds_batch;
  for (const Place& place : places_) {
    if (bounds_batch_ && place.model.sharing == Sharing::kTimeSliced)
      return fail(ErrorCode::kInvalidArgument,
                  "dispatch: %s leaves a part of the SMs to requests, for which a device has to run programs together, "
                  "and device %u (%.63s) runs them in time slices",
                  scenario_.dispatch.c_str(), place.number, place.model.name);
  }
  if ((*entry)->deadline) deadlines_ = std::make_unique<policy::DeadlineFamily>((*entry)->deadline, specs_);
  for (Place& place : places_) {
    const DeviceId device{place.number};
    place.dispatch =
        deadlines_ ? deadlines_->dispatch(device)
                   : policy::recorded(*policy::make_dispatch(scenario_.dispatch), scenario_.dispatch, device, log);
  }
  return {};
}

// Its first burst is a request from here on, where the host has nothing to do before it.
void World::wait_for_device(JobIndex index) {
  Job& job = jobs_[index];
  job.request = now_;
  job.issued.reset();
  if (!gates_) return;
  const std::string model = job.shape->model.empty() ? scenario_.devices.front().model : job.shape->model;
  deadlines_->waits(model, lessee_of(index), job.tenant(), now_);
}

// Requests that have not ended although their time is over, of jobs in the line of arrivals too.
void World::miss_what_is_open() {
  const auto miss = [&](const Job& job, TimePoint since) {
    if (job.shape->kind == policy::JobClass::kUserFacing && now_ - since > job.shape->slo)
      outcome_.user_facing.request_missed();
  };
  for (const Job& job : jobs_) {
    const bool open = job.phase == Job::Phase::kWaiting || job.in_burst();
    if (open && job.request) miss(job, *job.request);
  }
  for (const JobIndex job : line_) miss(jobs_[job], jobs_[job].arrived);
}

// Where may who go? With the latest figures of all who hold a device.
void World::plan() {
  if (!deadlines_) return;
  for (Place& place : places_) {
    for (const Lease& lease : place.leases) tell_service(place, lease.holder);
  }
  if (!deadlines_->plan(now_)) return;
  told(places_.front());
  books_changed_ = true;
}

void World::revoke(Place& place, const policy::Withdraw& order) {
  Lease* lease = place.lease_of(job_of(order.from.session));
  if (!lease) return;
  if (!lease->revoked && jobs_[lease->holder].in_burst()) lease->revoked = now_;
  if (!order.terminate) return withdraw(place, *lease);
  terminate(place, *lease);
}

// All that is in flight is lost, and what had not committed; the device is free when the worker is gone.
void World::terminate(Place& place, Lease& lease) {
  const JobIndex index = lease.holder;
  Job& job = jobs_[index];
  lease.withdrawing = true;
  if (lease.terminated) return;
  if (!place.shared.has(index)) return give_back(place, index);
  lease.terminated = true;
  const Duration busy = place.shared.busy_of(index, now_), copied = place.shared.copied_of(index, now_);
  job.outcome.busy += busy;
  job.copied += copied;
  job.burst += busy + copied;
  job.sla(outcome_).was_busy(busy);
  show_use(index, busy);
  job.left = place.shared.remove(index, now_);
  watch(place);
  if (job.phase == Job::Phase::kCopy) {
    job.left = job.shape->copy;
  } else {
    const Duration done = job.busy - job.left;
    job.committed = job.committed_with(done, scenario_.revocation.epoch);
    job.sla(outcome_).work_lost(done - job.committed);
    job.left = job.busy - job.committed;
  }
  job.resumes = true;
  queue_.put({now_ + scenario_.revocation.terminate, Event::Kind::kWorkerGone, place.number, lease.number});
}

}  // namespace heddle::simulator
