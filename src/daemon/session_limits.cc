#include "daemon/session_limits.h"

namespace heddle::daemon {

Status may_open(const Limits& limits, size_t total, size_t own, uid_t user) {
  if (total >= limits.sessions)
    return fail(ErrorCode::kLimitExceeded, "%zu sessions are open, and limits.sessions allows no more", total);
  if (own >= limits.sessions_per_user)
    return fail(ErrorCode::kLimitExceeded, "user %u has %zu sessions, and limits.sessions_per_user allows no more",
                user, own);
  const size_t reserved = limits.sessions / kReservedPart;
  if (own >= kFewSessions && total + reserved >= limits.sessions)
    return fail(
        ErrorCode::kLimitExceeded,
        "%zu sessions are open, and user %u has %zu of them: the last %zu of limits.sessions are for users with "
        "fewer than %zu",
        total, user, own, reserved, kFewSessions);
  return {};
}

}  // namespace heddle::daemon
