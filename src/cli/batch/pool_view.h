#pragma once

#include <set>

#include "cli/json.h"
#include "policy/job_admission.h"

namespace heddle::cli {

// What heddled's answers to `devices` and `ps` say of the pool and of a batch's jobs.
struct PoolView {
  policy::PoolUse use;
  std::set<JobId> with_task;  // those of the batch's jobs
};
PoolView pool_view(const Json& devices, const Json& ps, const std::set<JobId>& batch);

}  // namespace heddle::cli
