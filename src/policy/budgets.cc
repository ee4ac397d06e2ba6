#include "policy/budgets.h"

#include "policy/invariant.h"

namespace heddle::policy {

void Budgets::open(SessionId session, JobId job, Bytes budget) {
  sessions_[session] = {job, {}};
  ++jobs_.try_emplace(job, Job{budget, {}, 0}).first->second.sessions;
}

void Budgets::close(SessionId session) {
  const auto it = sessions_.find(session);
  require(it != sessions_.end(), "only an open session has a budget");
  const auto job = jobs_.find(it->second.job);
  job->second.live -= it->second.live;
  if (--job->second.sessions == 0) {
    require(job->second.live.value == 0, "a job without sessions has nothing live");
    jobs_.erase(job);
  }
  sessions_.erase(it);
}

Status Budgets::claim(SessionId session, Bytes amount) {
  const Session& owner = sessions_.at(session);
  const Job& job = jobs_.at(owner.job);
  if (job.live > job.budget || amount > job.budget - job.live)
    return fail(
        ErrorCode::kLimitExceeded,
        "%s asked for, which is over job %lu's budget of %s: %s of it is in use; give the job a larger budget or "
        "free memory first",
        to_string(amount).c_str(), static_cast<unsigned long>(owner.job.value), to_string(job.budget).c_str(),
        to_string(job.live).c_str());
  restore(session, amount);
  return {};
}

void Budgets::restore(SessionId session, Bytes amount) {
  Session& owner = sessions_.at(session);
  owner.live += amount;
  jobs_.at(owner.job).live += amount;
}

void Budgets::give_back(SessionId session, Bytes amount) {
  Session& owner = sessions_.at(session);
  require(amount <= owner.live, "a session gives back no more than it has live");
  owner.live -= amount;
  jobs_.at(owner.job).live -= amount;
}

Bytes Budgets::budget(SessionId session) const {
  return jobs_.at(sessions_.at(session).job).budget;
}

Bytes Budgets::live(SessionId session) const {
  return jobs_.at(sessions_.at(session).job).live;
}

}  // namespace heddle::policy
