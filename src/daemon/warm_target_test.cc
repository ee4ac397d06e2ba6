#include "daemon/warm_target.h"

#include <gmock/gmock.h>

namespace heddle::daemon {
namespace {

using ::testing::ElementsAre;

constexpr Bytes kContext{512 * kMiB}, kMuch{64 * kGiB};

TEST(WarmTarget, IsWhatIsConfiguredWhereNobodyIsExpected) {
  EXPECT_EQ(warm_target({.configured = 1, .free = kMuch, .context = kContext}), 1u);
  EXPECT_EQ(warm_target({.configured = 0, .free = kMuch, .context = kContext}), 0u);
}

TEST(WarmTarget, FollowsWhoHasSaidHello) {
  EXPECT_EQ(warm_target({.configured = 0, .greeted = 1, .free = kMuch, .context = kContext}), 1u);
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 1, .free = kMuch, .context = kContext}), 1u);
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 4, .free = kMuch, .context = kContext}), 4u);
}

TEST(WarmTarget, FollowsArrivals) {
  EXPECT_EQ(warm_target({.configured = 1, .arrivals = 5, .free = kMuch, .context = kContext}), 5u);
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 2, .arrivals = 5, .free = kMuch, .context = kContext}), 5u);
}

TEST(WarmTarget, FollowsFewArrivalsUnderMps) {
  const size_t most = kMostForArrivalsUnderMps;
  EXPECT_EQ(warm_target({.configured = 1, .arrivals = 8, .under_mps = true, .free = kMuch, .context = kContext}), most);
  EXPECT_EQ(warm_target(
                {.configured = 1, .greeted = 6, .arrivals = 8, .under_mps = true, .free = kMuch, .context = kContext}),
            6u);
}

TEST(WarmTarget, IsBounded) {
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 40, .free = kMuch, .context = kContext}), kMostExpected);
  EXPECT_EQ(warm_target({.configured = 12, .greeted = 40, .free = kMuch, .context = kContext}), 12u) << "as asked for";
}

TEST(WarmTarget, IsWithinAnEighthOfTheFreeMemory) {
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 8, .free = Bytes{8 * kGiB}, .context = kContext}), 3u);
  EXPECT_EQ(warm_target({.configured = 1, .greeted = 8, .free = Bytes{4 * kGiB - 1}, .context = kContext}), 1u);
  EXPECT_EQ(warm_target({.configured = 2, .arrivals = 8, .free = Bytes{}, .context = kContext}), 2u);
  EXPECT_EQ(warm_target({.configured = 0, .greeted = 3, .free = Bytes{}, .context = Bytes{}}), 3u);
}

TEST(ReserveTarget, IsForClientsThatAFaultOfAnotherCanStop) {
  EXPECT_EQ(reserve_target({0, true, false, kMuch, kContext}), 0u);
  EXPECT_EQ(reserve_target({1, true, false, kMuch, kContext}), 0u) << "alone the fault is its own";
  EXPECT_EQ(reserve_target({0, true, true, kMuch, kContext}), 1u) << "for who leaves MPS";
  EXPECT_EQ(reserve_target({2, true, false, kMuch, kContext}), 3u);
  EXPECT_EQ(reserve_target({9, true, false, kMuch, kContext}), kMostReserved);
  EXPECT_EQ(reserve_target({1, false, false, kMuch, kContext}), 0u);
  EXPECT_EQ(reserve_target({9, false, false, kMuch, kContext}), 1u) << "for who comes before MPS is back";
  EXPECT_EQ(reserve_target({9, false, false, Bytes{4 * kGiB - 1}, kContext}), 0u);
}

TEST(ReserveTarget, IsWithinAnEighthOfTheFreeMemory) {
  EXPECT_EQ(reserve_target({4, true, false, Bytes{8 * kGiB}, kContext}), 2u);
  EXPECT_EQ(reserve_target({4, true, false, Bytes{4 * kGiB - 1}, kContext}), 0u);
  EXPECT_EQ(reserve_target({4, true, false, Bytes{}, Bytes{}}), 5u);
}

TEST(SpreadSessions, GoToTheDevicesWithTheFewestTasks) {
  EXPECT_THAT(spread_sessions(3, {0, 0}), ElementsAre(2, 1));
  EXPECT_THAT(spread_sessions(3, {4, 0, 1}), ElementsAre(0, 2, 1));
  EXPECT_THAT(spread_sessions(1, {2, 2}), ElementsAre(1, 0));
  EXPECT_THAT(spread_sessions(0, {2}), ElementsAre(0));
  EXPECT_THAT(spread_sessions(2, {}), ElementsAre());
}

// Five programs that a fault has stopped compute outside of MPS, and are to go on under it: who comes has no worker.
TEST(ContextsWanted, WhoHasNoWorkerComesBeforeWhoGoesOnMeanwhile) {
  EXPECT_TRUE(others_come_first({.waiting = 1, .going_on = 5}));
  EXPECT_FALSE(others_come_first({.waiting = 0, .going_on = 5})) << "nobody else wants a context";
  EXPECT_FALSE(others_come_first({.waiting = 3, .going_on = 0})) << "contexts are made ahead where programs come, too";
  EXPECT_TRUE(others_come_first({.for_trials = true}));
}

}  // namespace
}  // namespace heddle::daemon
