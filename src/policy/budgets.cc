#include "policy/budgets.h"

namespace heddle::policy {

void Budgets::open(SessionId session, JobId job, Bytes budget) {
  live_.open(session, job);
  budgets_.try_emplace(job, budget);
}

void Budgets::close(SessionId session) {
  const JobId job = live_.group(session);
  if (live_.close(session)) budgets_.erase(job);
}

Status Budgets::claim(SessionId session, Bytes amount) {
  const Bytes limit = budget(session), used = live(session);
  if (used > limit || amount > limit - used)
    return fail(
        ErrorCode::kLimitExceeded,
        "%s asked for, which is over job %lu's budget of %s: %s of it is in use; give the job a larger budget or "
        "free memory first",
        to_string(amount).c_str(), static_cast<unsigned long>(live_.group(session).value), to_string(limit).c_str(),
        to_string(used).c_str());
  restore(session, amount);
  return {};
}

}  // namespace heddle::policy
