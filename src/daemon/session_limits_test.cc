#include "daemon/session_limits.h"

#include <gmock/gmock.h>

namespace heddle::daemon {
namespace {

constexpr uid_t kUser = 1000;

Limits limits(uint32_t sessions, uint32_t per_user) {
  Limits limits;
  limits.sessions = sessions;
  limits.sessions_per_user = per_user;
  return limits;
}

TEST(SessionLimits, AUserHasItsOwnLimit) {
  EXPECT_TRUE(may_open(limits(512, 2), 100, 1, kUser));
  const Status refused = may_open(limits(512, 2), 100, 2, kUser);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("limits.sessions_per_user"));
}

TEST(SessionLimits, TwoUsersAtTheirLimitLeaveRoomForAThird) {
  const Limits half = limits(512, 256);
  size_t first = 0, second = 0;
  while (may_open(half, first + second, first, kUser)) ++first;
  while (may_open(half, first + second, second, kUser + 1)) ++second;
  EXPECT_EQ(first, 256u);
  EXPECT_EQ(second, 192u);
  size_t third = 0;
  while (may_open(half, first + second + third, third, kUser + 2)) ++third;
  EXPECT_EQ(third, kFewSessions);
  const Status refused = may_open(half, first + second + third, third, kUser + 2);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("fewer than 8"));
}

TEST(SessionLimits, AfterAllThereIsAnEnd) {
  EXPECT_TRUE(may_open(limits(4, 4), 3, 3, kUser));
  EXPECT_FALSE(may_open(limits(4, 4), 4, 0, kUser));
}

}  // namespace
}  // namespace heddle::daemon
