#include "policy/swapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Sessions that are jobs of their own, with a task of the same number each.
struct SwapCase {
  explicit SwapCase(std::vector<DeviceSpec> devices = p100s(1), const char* policy = "mgb-warps", Options options = {})
      : scheduler(policy_named(policy), std::move(devices), options) {}

  void arrive(uint64_t id, Bytes memory, uint64_t blocks = 56) {
    scheduler.session_opened({id}, {id}, "p100", {}, now);
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", memory, grid(blocks)}, now);
  }
  void swap_out(uint64_t id) { Swapping(scheduler).swapped_out({id}, now); }
  void resume(uint64_t id) { Swapping(scheduler).resume_requested({id}, now); }
  // Tasks that were granted something now; none may be refused.
  std::vector<uint64_t> granted() {
    std::vector<uint64_t> tasks;
    last = scheduler.decisions(now);
    for (const Decision& each : last) {
      EXPECT_NE(each.kind, Decision::Kind::kRefuse) << each.reason;
      tasks.push_back(each.task.value);
    }
    return tasks;
  }
  DeviceView device(uint64_t id = 0) const { return scheduler.devices()[id]; }

  TimePoint now = at(0);
  Scheduler scheduler;
  std::vector<Decision> last;
};

TEST(SwappedTask, LeavesItsMemoryComputeAndContextToOthers) {
  SwapCase it(p100s(1, gib(16), gib(1)));
  it.arrive(1, gib(10));
  it.arrive(2, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  EXPECT_EQ(it.device().free, gib(16));
  EXPECT_EQ(it.device().warps + it.device().workers + it.device().tasks, 0u);
  EXPECT_THAT(it.granted(), ElementsAre(2));
}

TEST(SwappedTask, StaysInItsJobsBudget) {
  SwapCase it;
  it.arrive(1, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(10));
  it.scheduler.memory_freed({1}, gib(4), it.now);
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(6));
  it.scheduler.task_ended({1}, it.now);
  EXPECT_EQ(it.scheduler.budget({1})->live, Bytes{});
}

TEST(SwappedTask, IsGrantedAnyDeviceOfItsModelAsAResume) {
  SwapCase it(p100s(2));
  it.arrive(1, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  it.arrive(2, gib(10), 28);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  EXPECT_EQ(it.last[0].device, DeviceId{0});
  it.resume(1);
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_EQ(it.last[0].request, RequestKind::kResume);
  EXPECT_EQ(it.last[0].device, DeviceId{1});
  EXPECT_EQ(it.last[0].memory, gib(10));
}

// It stands behind who waits already, and before who comes later.
TEST(SwappedTask, StandsInTheLineFromItsResumeOn) {
  SwapCase it;
  it.arrive(1, gib(10));
  it.arrive(2, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  it.now = at(10);
  it.resume(1);
  it.now = at(20);
  it.arrive(3, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(2));
  it.now = at(30);
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_EQ(it.last[0].waited, std::chrono::milliseconds(20));
}

TEST(SwappedTask, WithdrawnItWantsNothingAndCanBeResumedLater) {
  SwapCase it;
  it.arrive(1, gib(10));
  it.arrive(2, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  it.resume(1);
  Swapping(it.scheduler).resume_withdrawn({1}, it.now);
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_EQ(it.device().free, gib(16));
  it.resume(1);
  EXPECT_THAT(it.granted(), ElementsAre(1));
}

TEST(SwappedTask, WhatItHadAskedForBesidesIsDecidedOnceItRunsAgain) {
  SwapCase it;
  it.arrive(1, gib(6));
  it.arrive(2, gib(6));
  EXPECT_THAT(it.granted(), ElementsAre(1, 2));
  it.scheduler.extension_requested({1}, gib(5), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  it.swap_out(1);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(it.scheduler.waiting(), IsEmpty());
  it.scheduler.task_ended({2}, it.now);
  it.resume(1);
  EXPECT_THAT(it.granted(), ElementsAre(1, 1));
  EXPECT_EQ(it.last[1].kind, Decision::Kind::kExtend);
  EXPECT_EQ(it.last[1].memory, gib(5));
}

TEST(SwappedTask, EndsWhileItWaitsForADevice) {
  SwapCase it;
  it.arrive(1, gib(10));
  it.arrive(2, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  it.resume(1);
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.scheduler.waiting(), IsEmpty());
  EXPECT_EQ(it.scheduler.budget({1})->live, Bytes{});
}

TEST(SwappedTask, DoesNotCountAsItsUsersMemory) {
  SwapCase it(p100s(2), "mgb-warps", {.memory_per_user = gib(10)});
  it.arrive(1, gib(8));
  it.arrive(2, gib(8));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  it.resume(1);
  EXPECT_THAT(it.granted(), IsEmpty());
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(1));
}

TEST(SwappedTask, IsPutBackAfterARestart) {
  SwapCase it;
  it.scheduler.session_opened({1}, {1}, "p100", {}, it.now);
  ASSERT_TRUE(Swapping(it.scheduler).adopt({{1}, {1}, {1}, 0, "", gib(10), grid(56)}, it.now));
  EXPECT_EQ(it.device().free, gib(16));
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(10));
  it.resume(1);
  EXPECT_THAT(it.granted(), ElementsAre(1));
}

TEST(SwappedTask, IsNotTakenBackUnderAPolicyThatDoesNotCountMemory) {
  SwapCase it(p100s(1), "cg:2");
  it.scheduler.session_opened({1}, {1}, "p100", {}, it.now);
  const Status adopted = Swapping(it.scheduler).adopt({{1}, {1}, {1}, 0, "", gib(10), grid(56)}, it.now);
  ASSERT_FALSE(adopted);
  EXPECT_THAT(adopted.error().text, HasSubstr("does not count memory"));
}

TEST(SwappedTask, ComesBackWithWhatItHasAskedForBesides) {
  SwapCase it;
  it.arrive(1, gib(6));
  it.arrive(2, gib(6));
  EXPECT_THAT(it.granted(), ElementsAre(1, 2));
  it.now = at(10);
  it.scheduler.extension_requested({1}, gib(5), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  it.swap_out(1);
  it.now = at(20);
  it.resume(1);
  EXPECT_THAT(it.granted(), IsEmpty());  // 6 would fit beside the other, and 5 more would not
  ASSERT_EQ(it.scheduler.waiting().size(), 1u);
  EXPECT_EQ(it.scheduler.waiting()[0].memory, gib(11));
  EXPECT_EQ(it.scheduler.waiting()[0].since, at(10));
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(1, 1));
  EXPECT_EQ(it.last[0].memory, gib(11));
  EXPECT_EQ(it.last[1].kind, Decision::Kind::kExtend);
  EXPECT_EQ(it.last[1].memory, gib(5));
  EXPECT_EQ(it.device().promised, gib(11));
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(11));
  it.scheduler.task_ended({1}, it.now);
  EXPECT_EQ(it.device().promised, Bytes{});
  EXPECT_EQ(it.scheduler.budget({1})->live, Bytes{});
}

TEST(SwappedTask, WithdrawnOrEndedItTakesWhatItHasAskedForBesidesWithIt) {
  SwapCase it;
  it.arrive(1, gib(6));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  it.scheduler.extension_requested({1}, gib(5), it.now);
  it.resume(1);
  Swapping(it.scheduler).resume_withdrawn({1}, it.now);
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(11));
  it.resume(1);
  EXPECT_EQ(it.scheduler.waiting()[0].memory, gib(11));
  it.scheduler.task_ended({1}, it.now);
  EXPECT_EQ(it.scheduler.budget({1})->live, Bytes{});
}

TEST(SwappedTask, CannotAskForMoreThanADeviceHoldsTogether) {
  SwapCase it;
  it.arrive(1, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.swap_out(1);
  it.scheduler.extension_requested({1}, gib(7), it.now);
  const auto decided = it.scheduler.decisions(it.now);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_EQ(decided[0].error, ErrorCode::kOutOfMemory);
  it.resume(1);
  EXPECT_THAT(it.granted(), ElementsAre(1));
}

//   device 0 (16):  1, 2 and 3 hold 5 each, and want 6 more each
struct ThreeInACircle : testing::Test {
  ThreeInACircle() : it(p100s(1), "mgb-warps", {.swaps = true}) {
    for (const uint64_t id : {1, 2, 3}) it.arrive(id, gib(5), 1);
    EXPECT_THAT(it.granted(), ElementsAre(1, 2, 3));
    for (const uint64_t id : {1, 2, 3}) {
      it.now = at(static_cast<int64_t>(id));
      it.scheduler.extension_requested({id}, gib(6), it.now);
    }
  }
  std::vector<Decision> decide() { return it.scheduler.decisions(it.now); }
  SwapCase it;
};

TEST_F(ThreeInACircle, TheYoungestLeavesAndComesBackWithAllThatItWants) {
  EXPECT_THAT(it.granted(), ElementsAre(3));
  EXPECT_EQ(it.last[0].kind, Decision::Kind::kLeave);
  EXPECT_EQ(it.last[0].memory, gib(5));
  EXPECT_THAT(it.last[0].reason, HasSubstr("session 3 holds 5 GiB on device 0 and waits for 6 GiB more"));
  EXPECT_THAT(it.granted(), IsEmpty());  // it is on its way
  it.swap_out(3);
  it.resume(3);
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_EQ(it.last[0].kind, Decision::Kind::kExtend);
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(2));
  EXPECT_EQ(it.last[0].kind, Decision::Kind::kExtend);
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(3, 3));
  EXPECT_EQ(it.last[0].memory, gib(11));
  it.scheduler.task_ended({3}, it.now);
  EXPECT_EQ(it.device().promised, Bytes{});
}

TEST_F(ThreeInACircle, OneThatCannotLeaveIsRefusedAndHearsWhy) {
  EXPECT_THAT(it.granted(), ElementsAre(3));
  Swapping(it.scheduler).stays({3}, "swap space is full", it.now);
  const auto decided = decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_EQ(decided[0].request, RequestKind::kExtension);
  EXPECT_EQ(decided[0].task, TaskId{3});
  EXPECT_EQ(decided[0].error, ErrorCode::kOutOfMemory);
  EXPECT_THAT(decided[0].reason, HasSubstr("waiting could never end: session 1 holds 5 GiB"));
  EXPECT_THAT(decided[0].reason, HasSubstr("memory cannot leave the device meanwhile: swap space is full"));
}

// What kept it is not held against it later.
TEST_F(ThreeInACircle, OneThatCouldNotLeaveOnceIsAskedAgain) {
  EXPECT_THAT(it.granted(), ElementsAre(3));
  Swapping(it.scheduler).stays({3}, "swap space is full", it.now);
  ASSERT_EQ(decide().size(), 1u);
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.arrive(4, gib(0), 1);
  EXPECT_THAT(it.granted(), ElementsAre(4));
  it.scheduler.extension_requested({1}, gib(1), it.now);
  it.now = at(9);
  it.scheduler.extension_requested({3}, gib(2), it.now);
  EXPECT_THAT(it.granted(), ElementsAre(3));
  EXPECT_EQ(it.last[0].kind, Decision::Kind::kLeave);
}

TEST_F(ThreeInACircle, OneThatEndsOnItsWayOutIsForgotten) {
  EXPECT_THAT(it.granted(), ElementsAre(3));
  it.scheduler.session_closed({3}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(1));
}

// Its two tasks would only push each other out.
TEST(SwappedTask, ASessionThatStandsInItsOwnWayIsRefused) {
  SwapCase it(p100s(1), "schedgpu", {.swaps = true});
  it.arrive(1, gib(10));
  EXPECT_THAT(it.granted(), ElementsAre(1));
  it.scheduler.task_arrived({{2}, {1}, {1}, 1, "", gib(10), grid(1)}, it.now);
  const auto decided = it.scheduler.decisions(it.now);
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
}

// Device 0 has tasks of 4, 6 and 2 GiB, device 1 one of 14.
struct FourHolders : testing::Test {
  FourHolders() : it(p100s(2)) {
    it.scheduler.outside_memory({1}, gib(16), it.now);
    it.arrive(1, gib(4));
    it.arrive(2, gib(6));
    it.arrive(3, gib(2));
    EXPECT_THAT(it.granted(), ElementsAre(1, 2, 3));
    it.scheduler.outside_memory({1}, {}, it.now);
    it.arrive(4, gib(14));
    EXPECT_THAT(it.granted(), ElementsAre(4));
  }
  std::vector<uint64_t> would_leave(const std::vector<TaskId>& could) {
    std::vector<uint64_t> ids;
    for (const TaskId id : Swapping::who_makes_room(it.scheduler, could, it.now)) ids.push_back(id.value);
    return ids;
  }
  SwapCase it;
};

TEST_F(FourHolders, NobodyLeavesWhereNobodyWaits) {
  EXPECT_THAT(would_leave({{1}, {2}, {3}, {4}}), IsEmpty());
}

TEST_F(FourHolders, NobodyLeavesForWhoHasNotWaitedForLongEnough) {
  it.now = at(1000);
  it.arrive(5, gib(9));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_TRUE(Swapping::anybody_waits(it.scheduler));
  EXPECT_THAT(Swapping::who_makes_room(it.scheduler, {{2}}, at(999)), IsEmpty());
  EXPECT_THAT(Swapping::who_makes_room(it.scheduler, {{2}}, at(1000)), ElementsAre(TaskId{2}));
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.granted(), ElementsAre(5));
  EXPECT_FALSE(Swapping::anybody_waits(it.scheduler));
}

TEST_F(FourHolders, TheDeviceWhereFewestBytesMakeRoom) {
  it.arrive(5, gib(9));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(would_leave({{1}, {2}, {3}, {4}}), ElementsAre(2));
}

TEST_F(FourHolders, AsManyAsAreNeededTogether) {
  it.arrive(5, gib(12));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(would_leave({{1}, {2}, {3}}), UnorderedElementsAre(2, 3));
  EXPECT_THAT(would_leave({{1}, {3}}), IsEmpty());
  EXPECT_THAT(would_leave({{4}, {1}, {3}}), ElementsAre(4));
}

TEST_F(FourHolders, ForMoreMemoryOfARunningTaskOthersOfItsDevice) {
  it.scheduler.extension_requested({1}, gib(6), it.now);
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(would_leave({{1}, {2}, {3}, {4}}), ElementsAre(3));
}

TEST_F(FourHolders, ForYoungerRequestsWhereTheOldestIsNotHelped) {
  it.arrive(5, gib(16));
  it.arrive(6, gib(6));
  EXPECT_THAT(it.granted(), IsEmpty());
  EXPECT_THAT(would_leave({{3}}), ElementsAre(3));
}

TEST(MakeRoom, ForSmsWhereThoseAreWaitedFor) {
  SwapCase it(p100s(1), "mgb-sm");
  it.arrive(1, gib(1), 448);
  it.arrive(2, gib(1), 448);
  EXPECT_THAT(it.granted(), ElementsAre(1));
  EXPECT_THAT(Swapping::who_makes_room(it.scheduler, {{1}}, it.now), ElementsAre(TaskId{1}));
}

TEST(IdleTasks, StayForFiveTimesAsLongAsTheyMustBeIdleAndForTenTimesTheirCopies) {
  using std::chrono::milliseconds;
  EXPECT_FALSE(may_leave_again(milliseconds(4999), milliseconds(499), milliseconds(1000)));
  EXPECT_TRUE(may_leave_again(milliseconds(5000), milliseconds(499), milliseconds(1000)));
  EXPECT_FALSE(may_leave_again(milliseconds(5009), milliseconds(501), milliseconds(1000)));
  EXPECT_TRUE(may_leave_again(milliseconds(5010), milliseconds(501), milliseconds(1000)));
}

}  // namespace
}  // namespace heddle::policy
