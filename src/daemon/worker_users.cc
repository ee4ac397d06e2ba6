#include "daemon/worker_users.h"

#include <unistd.h>

#include <set>

namespace heddle::daemon {

Result<WorkerUser> user_of_new_worker(const Shared& shared, bool under_mps) {
  const UidRange& uids = shared.config.worker_uids;
  if (uids.count == 0) return WorkerUser{shared.config.worker_user, 0};
  std::set<uint32_t> taken;
  if (!under_mps) {
    for (const auto& [id, worker] : shared.registry.workers) taken.insert(worker.uid);
    taken.insert(uids.first);  // of the workers under MPS
  }
  for (uint32_t uid = uids.first; uid - uids.first < uids.count; ++uid) {
    if (!taken.contains(uid)) return WorkerUser{std::to_string(uid), uid};
  }
  return fail(ErrorCode::kLimitExceeded, "all %u of worker_uids are taken by workers: give it more", uids.count);
}

Status check_worker_users(const Config& config) {
  if (config.worker_uids.count == 0 || ::geteuid() == 0) return {};
  return fail(ErrorCode::kPermission, "worker_uids needs a heddled that runs as root, and this one is user %u",
              ::geteuid());
}

}  // namespace heddle::daemon
