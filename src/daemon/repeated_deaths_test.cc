#include "daemon/repeated_deaths.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

using std::chrono::milliseconds;

constexpr Duration kSoon = milliseconds(100), kMuchLater = std::chrono::minutes(10);

struct RepeatedDeaths : ::testing::Test {
  // Whether another worker follows.
  bool crashes_at_work(Duration after, uint64_t place = 7) { return dies(after, {place, true, true}); }
  bool crashes_idle(Duration after) { return dies(after, {7, true, false}); }
  bool is_killed(Duration after, uint64_t place = 7) { return dies(after, {place, false, true}); }
  bool dies(Duration after, DeathsInPlace::Death death) {
    death.when = now += after;
    deaths.add(death);
    return !deaths.too_many();
  }
  DeathsInPlace deaths;
  TimePoint now{kMuchLater};
};

TEST_F(RepeatedDeaths, AtWorkASecondCrashIsTheWorks) {
  EXPECT_TRUE(crashes_at_work(kSoon));
  EXPECT_FALSE(crashes_at_work(kMuchLater));
}

TEST_F(RepeatedDeaths, AnIdleProgramsWorkersMayCrashFromTimeToTime) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(crashes_idle(kMuchLater));
  EXPECT_FALSE(crashes_idle(kSoon));
}

TEST_F(RepeatedDeaths, ACrashBeforeTheWorkIsNoneOfIt) {
  EXPECT_TRUE(crashes_idle(kMuchLater));
  EXPECT_TRUE(crashes_at_work(kMuchLater));
  EXPECT_FALSE(crashes_at_work(kMuchLater));
}

TEST_F(RepeatedDeaths, WorkersThatAreKilledInALongKernelAreFollowed) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_killed(DeathsInPlace::kQuick));
  for (uint32_t i = 2; i < DeathsInPlace::kMostKills; ++i) EXPECT_TRUE(is_killed(kSoon));
  EXPECT_FALSE(is_killed(kSoon));
}

TEST_F(RepeatedDeaths, AKillInBetweenMakesNoCrashForgotten) {
  EXPECT_TRUE(crashes_at_work(kSoon));
  EXPECT_TRUE(is_killed(kMuchLater));
  EXPECT_FALSE(crashes_at_work(kMuchLater));
}

TEST_F(RepeatedDeaths, AnotherPlaceIsProgress) {
  for (uint64_t place = 0; place < 20; ++place) {
    EXPECT_TRUE(crashes_at_work(kSoon, place));
    EXPECT_TRUE(is_killed(kSoon, place));
  }
}

}  // namespace
}  // namespace heddle::daemon
