#include "policy/eager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/swapping.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Sessions that are jobs of their own, with a task of the same number each.
struct EagerCase {
  explicit EagerCase(std::vector<DeviceSpec> devices = p100s(1), const char* policy = "mgb-warps", Options options = {})
      : scheduler(policy_named(policy), std::move(devices), options) {}

  void arrive(uint64_t id, Bytes memory, UserId user = {}) {
    scheduler.session_opened({id}, {id}, "p100", {}, now, user);
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", memory, grid(56)}, now);
  }
  std::vector<uint64_t> granted() {
    std::vector<uint64_t> tasks;
    last = scheduler.decisions(now);
    for (const Decision& each : last) {
      EXPECT_NE(each.kind, Decision::Kind::kRefuse) << each.reason;
      tasks.push_back(each.task.value);
    }
    return tasks;
  }
  // Task and device of each place, in order.
  std::vector<std::pair<uint64_t, uint64_t>> places() {
    std::vector<std::pair<uint64_t, uint64_t>> places;
    for (const EagerPlace& each : Eager::could_launch(scheduler))
      places.emplace_back(each.task.value, each.device.value);
    return places;
  }
  void launch(uint64_t id, Bytes on_host, uint64_t device = 0) {
    Eager(scheduler).launched({id}, {device}, on_host, now);
  }
  Bytes could_promote(uint64_t id) const { return Eager::could_promote(scheduler, {id}); }
  DeviceView device(uint64_t id = 0) const { return scheduler.devices()[id]; }
  RunningView running(uint64_t id) const {
    for (const RunningView& each : scheduler.running()) {
      if (each.task == TaskId{id}) return each;
    }
    return {};
  }

  TimePoint now = at(0);
  Scheduler scheduler;
  std::vector<Decision> last;
};

TEST(EagerLaunch, TakesADeviceWithHalfOfItsMemoryFree) {
  EagerCase it(p100s(1, gib(16), gib(1)));
  it.arrive(1, gib(8));
  it.arrive(2, gib(12));  // of the 7 that are free a context takes one
  EXPECT_THAT(it.granted(), ElementsAre(1));
  const auto places = Eager::could_launch(it.scheduler);
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].task, TaskId{2});
  EXPECT_EQ(places[0].least, gib(6));
  EXPECT_EQ(places[0].most, gib(6));
  it.launch(2, gib(6));
  EXPECT_THAT(it.granted(), ElementsAre(2));
  EXPECT_EQ(it.last[0].memory, gib(12));
  EXPECT_EQ(it.last[0].on_host, gib(6));
  EXPECT_THAT(it.last[0].reason, HasSubstr("launched eagerly"));
  EXPECT_EQ(it.device().free, Bytes{});
  EXPECT_EQ(it.scheduler.budget({2})->live, gib(12));
}

TEST(EagerLaunch, NeedsHalfOfTheMemoryFree) {
  EagerCase it;
  it.arrive(1, gib(11));
  it.arrive(2, gib(12));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_THAT(it.places(), IsEmpty());
}

TEST(EagerLaunch, IsForWhoWaitsForMemoryAlone) {
  EagerCase it(p100s(1), "sa");
  it.arrive(1, gib(4));
  it.arrive(2, gib(14));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_THAT(it.places(), IsEmpty());  // under sa a device is one job's
}

TEST(EagerLaunch, IsForOneTaskADevice) {
  EagerCase it(p100s(2));
  it.arrive(1, gib(8));
  it.arrive(2, gib(7));
  it.arrive(3, gib(12));
  it.arrive(4, gib(14));
  it.arrive(5, gib(1));
  EXPECT_THAT(it.granted(), ElementsAre(1, 2, 5));
  // The one with the most free memory first; the oldest first.
  ASSERT_THAT(it.places(), ElementsAre(std::pair(3, 1), std::pair(3, 0), std::pair(4, 1), std::pair(4, 0)));
  it.launch(3, gib(6), 1);
  EXPECT_THAT(it.granted(), ElementsAre(3));
  EXPECT_THAT(it.places(), ElementsAre(std::pair(4, 0)));
}

TEST(EagerLaunch, LeavesAReservedDeviceToWhoReservedIt) {
  EagerCase it(p100s(1), "mgb-warps", {.age_limit = std::chrono::milliseconds(100)});
  it.arrive(1, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.arrive(2, gib(14));  // too large for an eager launch
  it.now = at(50);
  it.arrive(3, gib(10));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(it.places(), ElementsAre(std::pair(3, 0)));
  it.now = at(150);
  it.scheduler.memory_freed({99}, {}, it.now);
  it.scheduler.compute_grew({1}, grid(60), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(it.places(), IsEmpty());
}

TEST(EagerLaunch, DoesNothingWhereTheRestIsNotFree) {
  EagerCase it;
  it.arrive(1, gib(8));
  it.arrive(2, gib(12));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.launch(2, gib(3));  // 9 on the device, where 8 are free
  it.launch(7, gib(3));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_EQ(it.scheduler.waiting().size(), 1u);
}

TEST(EagerLaunch, StaysWithinWhatAUserMayHold) {
  EagerCase it(p100s(1), "mgb-warps", {.memory_per_user = gib(13)});
  it.arrive(1, gib(8), {1});
  it.arrive(2, gib(12), {1});  // 6 more than the 8 are too many
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_THAT(it.places(), IsEmpty());
}

struct Promotion : testing::Test {
  Promotion() {
    it.arrive(1, gib(8));
    it.arrive(2, gib(12));
    EXPECT_THAT(it.granted(), ElementsAre(1));
    it.launch(2, gib(5));
    EXPECT_THAT(it.granted(), ElementsAre(2));
  }
  EagerCase it{p100s(1), "mgb-warps", {.age_limit = std::chrono::milliseconds(100)}};
};

TEST_F(Promotion, TakesWhatReturnsOnTheDevice) {
  EXPECT_EQ(it.could_promote(2), gib(1));
  it.scheduler.memory_freed({1}, gib(2), it.now);
  EXPECT_EQ(it.could_promote(2), gib(3));
  Eager(it.scheduler).promoted({2}, gib(3), it.now);
  EXPECT_EQ(it.running(2).memory, gib(10));
  EXPECT_EQ(it.running(2).on_host, gib(2));
  EXPECT_EQ(it.device().free, Bytes{});
  EXPECT_EQ(it.could_promote(1), Bytes{});
}

TEST_F(Promotion, ThatFailsLeavesTheBooksAsTheyWere) {
  it.scheduler.memory_freed({1}, gib(2), it.now);
  const Bytes free = it.device().free;
  Eager(it.scheduler).promoted({2}, gib(3), it.now);
  Eager(it.scheduler).returned_to_host({2}, gib(3), it.now);
  EXPECT_EQ(it.device().free, free);
  EXPECT_EQ(it.running(2).on_host, gib(5));
  EXPECT_EQ(it.scheduler.budget({2})->live, gib(12));
}

TEST_F(Promotion, OfAllMakesPlaceForAnotherEagerTask) {
  it.scheduler.task_ended({1}, it.now);
  EXPECT_EQ(it.could_promote(2), gib(5));
  Eager(it.scheduler).promoted({2}, gib(5), it.now);
  it.arrive(3, gib(7));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(it.places(), ElementsAre(std::pair(3, 0)));
}

TEST_F(Promotion, ComesBeforeAYoungerRequestsReservation) {
  it.arrive(3, gib(16));
  EXPECT_THAT(it.granted(), IsEmpty());
  it.now = at(200);
  it.scheduler.memory_freed({1}, gib(1), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_TRUE(it.device().reserved_for);
  EXPECT_EQ(it.could_promote(2), gib(2));
}

TEST(EagerTask, IsPromotedBehindAnOlderRequestsReservation) {
  EagerCase it(p100s(1), "mgb-warps", {.age_limit = std::chrono::milliseconds(100)});
  it.arrive(1, gib(8));
  it.arrive(2, gib(16));
  it.now = at(10);
  it.arrive(3, gib(12));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.launch(3, gib(5));
  EXPECT_THAT(it.granted(), ElementsAre(3));
  EXPECT_EQ(it.could_promote(3), gib(1));
  it.now = at(105);  // the second is of age, the third would not be
  it.scheduler.memory_freed({1}, gib(1), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_TRUE(it.device().reserved_for);
  EXPECT_EQ(it.could_promote(3), Bytes{});
}

// Nobody knows any more which of them came first.
TEST_F(Promotion, ComesBehindAReservationAfterARestart) {
  Scheduler after(policy_named("mgb-warps"), p100s(1), {.age_limit = std::chrono::milliseconds(100)});
  after.session_opened({2}, {2}, "p100", {}, it.now);
  ASSERT_TRUE(after.adopt({{2}, {2}, {2}, 0, "", gib(12), grid(56), gib(5)}, {0}, it.now));
  after.session_opened({3}, {3}, "p100", {}, it.now);
  after.task_arrived({{3}, {3}, {3}, 0, "", gib(16), grid(56)}, it.now);
  EXPECT_THAT(after.decisions(it.now), IsEmpty());
  EXPECT_EQ(Eager::could_promote(after, {2}), gib(5));
  EXPECT_THAT(after.decisions(at(200)), IsEmpty());
  EXPECT_EQ(Eager::could_promote(after, {2}), Bytes{});
}

TEST_F(Promotion, ComesBehindWhatTheTaskAsksForBesides) {
  it.scheduler.extension_requested({2}, gib(3), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_EQ(it.could_promote(2), Bytes{});
}

TEST_F(Promotion, IsNotNeededForWhatIsFreed) {
  Eager(it.scheduler).host_memory_freed({2}, gib(5), it.now);
  EXPECT_EQ(it.scheduler.budget({2})->live, gib(7));
  EXPECT_EQ(it.could_promote(2), Bytes{});
  it.scheduler.task_ended({2}, it.now);
  EXPECT_EQ(it.scheduler.budget({2})->live, Bytes{});
  EXPECT_EQ(it.device().free, gib(8));
}

TEST_F(Promotion, IsNotNeededForATaskThatWasSwappedOut) {
  it.scheduler.task_ended({1}, it.now);
  Swapping(it.scheduler).swapped_out({2}, it.now);
  EXPECT_EQ(it.device().free, gib(16));
  Swapping(it.scheduler).resume_requested({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  EXPECT_EQ(it.running(2).memory, gib(12));
  EXPECT_EQ(it.running(2).on_host, Bytes{});
}

TEST_F(Promotion, IsStillPossibleAfterARestart) {
  Scheduler after(policy_named("mgb-warps"), p100s(1));
  after.session_opened({2}, {2}, "p100", {}, it.now);
  ASSERT_TRUE(after.adopt({{2}, {2}, {2}, 0, "", gib(12), grid(56), gib(5)}, {0}, it.now));
  EXPECT_EQ(after.devices()[0].free, gib(9));
  EXPECT_EQ(after.budget({2})->live, gib(12));
  EXPECT_EQ(Eager::could_promote(after, {2}), gib(5));
}

TEST(EagerTask, MayBecomeAsLargeAsItsDevice) {
  EagerCase it;
  it.arrive(1, gib(8));
  it.arrive(2, gib(12));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.launch(2, gib(4));
  EXPECT_THAT(it.granted(), ElementsAre(2));
  it.scheduler.extension_requested({2}, gib(5), it.now);
  const auto decided = it.scheduler.decisions(it.now);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_THAT(decided[0].reason, HasSubstr("the task has 12 GiB there"));
}

TEST(EagerSegments, GoToTheDeviceInTheirOrderAsFarAsTheyFit) {
  const std::vector<Bytes> segments{gib(4), gib(7), gib(3), gib(1)};
  EXPECT_THAT(segments_that_fit(segments, gib(8)), ElementsAre(0, 2, 3));
  EXPECT_THAT(segments_that_fit(segments, gib(15)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(segments_that_fit(segments, gib(0)), IsEmpty());
}

TEST(EagerSegments, AreLaunchedWithHalfOnTheDeviceAndPlaceForTheRestInSwapSpace) {
  const EagerPlace place{{1}, {0}, gib(6), gib(8)};
  EXPECT_TRUE(may_launch(place, gib(12), gib(6), gib(6)));
  EXPECT_FALSE(may_launch(place, gib(12), gib(7), gib(16)));
  EXPECT_FALSE(may_launch(place, gib(12), gib(6), gib(5)));
  EXPECT_FALSE(may_launch(place, gib(12), gib(0), gib(16)));
  EXPECT_FALSE(may_launch({{1}, {0}, gib(0), gib(8)}, gib(12), gib(12), gib(16)));
}

TEST(EagerSegments, ArePromotedWhenHalfOfThemFits) {
  EXPECT_TRUE(is_worth_promoting(gib(3), gib(6)));
  EXPECT_FALSE(is_worth_promoting(gib(2), gib(6)));
  EXPECT_FALSE(is_worth_promoting(gib(0), gib(0)));
}

}  // namespace
}  // namespace heddle::policy
