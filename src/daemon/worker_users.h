#pragma once

#include "daemon/shared.h"

namespace heddle::daemon {

// As whom a new worker of the device runs, for its --user: a uid of `worker_uids` that no other worker has, so that
// what one tenant's work breaks out into has no rights over another's; under MPS, whose server takes the clients of one
// user, the first of them. Else `worker_user`; empty: heddled's own. kLimitExceeded where all are taken.
struct WorkerUser {
  std::string name;
  uint32_t uid = 0;  // of `worker_uids`; 0: none
};
Result<WorkerUser> user_of_new_worker(const Shared& shared, bool under_mps);

// Only root can run workers as others.
Status check_worker_users(const Config& config);

}  // namespace heddle::daemon
