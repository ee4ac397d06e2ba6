#include "policy/placement_state.h"

#include "policy/invariant.h"

namespace heddle::policy {

PlacementState::PlacementState(std::unique_ptr<Placement> placement, std::vector<DeviceSpec> devices)
    : ledger_(std::move(devices)), placement_(std::move(placement)) {
  placement_->opened(pool());
}

PlacementState::PlacementState(const PlacementState& other)
    : ledger_(other.ledger_),
      placement_(other.placement_->clone()),
      sessions_(other.sessions_),
      open_jobs_(other.open_jobs_),
      assignments_(other.assignments_) {}

void PlacementState::open_session(SessionId session, JobId job, const std::string& app, TimePoint now) {
  require(sessions_.try_emplace(session, job).second, "a session opens once");
  const auto [opened, first] = open_jobs_.try_emplace(job, OpenJob{0, now});
  ++opened->second.sessions;
  if (first) placement_->job_opened(job, app);
}

void PlacementState::close_session(SessionId session, std::optional<TimePoint> now) {
  const auto it = sessions_.find(session);
  require(it != sessions_.end(), "only an open session closes");
  const JobId job = it->second;
  for (const TaskId task : ledger_.tasks(session)) placement_->task_ended(task);
  ledger_.close(session);
  sessions_.erase(it);
  OpenJob& open = open_jobs_.at(job);
  if (--open.sessions > 0) return;
  const Duration life = now ? *now - open.since : Duration{};
  open_jobs_.erase(job);
  std::erase_if(assignments_, [&](const auto& assignment) { return assignment.first == job; });
  placement_->job_ended(job, life);
}

void PlacementState::served(SessionId session, DeviceId device, const Service& since_last) {
  placement_->served(sessions_.at(session), device, since_last);
}

bool PlacementState::holds(SessionId session) const {
  if (ledger_.has_workers(session)) return true;
  const JobId job = sessions_.at(session);
  const auto it = assignments_.lower_bound({job, {}});
  return it != assignments_.end() && it->first == job;
}

bool PlacementState::holds_on(SessionId session, DeviceId device) const {
  return ledger_.has_worker_on(session, device) || assignments_.contains({sessions_.at(session), device});
}

bool PlacementState::can_extend(SessionId session, TaskId task, Bytes more) const {
  return more <= pool().free(ledger_.find(session, task)->device);
}

void PlacementState::take_place(const Request& request, DeviceId device) {
  assignments_.insert({request.job, device});
  placement_->assigned(request, device);
}

void PlacementState::assign(const Request& request, DeviceId device) {
  ledger_.assign(request.session, request.virtual_device, device);
  take_place(request, device);
}

void PlacementState::begin(const Request& request, DeviceId device) {
  if (assigns_jobs()) assign(request, device);
  ledger_.begin(request, device);
  placement_->task_began(request.task, request.compute, device, pool());
}

void PlacementState::set_compute(SessionId session, TaskId task, const ComputeNeed& need) {
  ledger_.set_compute(session, task, need);
  placement_->compute_changed(task, need, pool());
}

void PlacementState::end(SessionId session, TaskId task) {
  ledger_.end(session, task);
  placement_->task_ended(task);
}

}  // namespace heddle::policy
