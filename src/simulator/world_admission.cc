// How many jobs run at once, where the scenario does not say it.

#include <algorithm>

#include "simulator/world.h"

namespace heddle::simulator {

void World::begin_admission(bool binds_jobs) {
  admission_.emplace(policy::AdmissionLimits{.binds_jobs = binds_jobs});
  use_.devices = static_cast<uint32_t>(specs_.size());
  for (const policy::DeviceSpec& spec : specs_) use_.max_warps += uint64_t{spec.sms} * spec.sm.whole.warps;
  const Place& place = places_.front();
  if (place.model.sharing == Sharing::kTimeSliced) use_.sharing = policy::DeviceSharing::kTimeSliced;
  if (place.dispatch->exclusive()) use_.sharing = policy::DeviceSharing::kLeased;
}

policy::PoolUse World::pool_use() {
  policy::PoolUse use = use_;
  for (Place& place : places_) use.busy_ns += place.shared.busy_of_all(now_);
  return use;
}

// Jobs from the line, as long as there is use for another.
void World::admit() {
  admission_->look(pool_use(), now_);
  while (!line_.empty() && admission_->admits(now_)) {
    const JobIndex next = line_.front();
    line_.pop_front();
    open(next);
    const JobId job{jobs_[next].session.value};
    admission_->started(job, now_);
    admission_->announced(job);
    decide();
    admission_->look(pool_use(), now_);
  }
  if (line_.empty() || admission_due_) return;
  admission_due_ = true;
  queue_.put({std::max(now_, admission_->next(now_)), Event::Kind::kAdmission});
}

}  // namespace heddle::simulator
