#pragma once

#include <sys/types.h>

#include "core/result.h"
#include "daemon/config.h"

namespace heddle::daemon {

// The last eighth of all sessions is for users who have few: two users at their limit do not lock out a third.
inline constexpr size_t kReservedPart = 8;
inline constexpr size_t kFewSessions = 8;

// Whether a user with `own` of `total` open sessions may open one more. kLimitExceeded with the limit and the value.
Status may_open(const Limits& limits, size_t total, size_t own, uid_t user);

}  // namespace heddle::daemon
