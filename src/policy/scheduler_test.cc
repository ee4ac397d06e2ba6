#include "policy/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Decision::Kind;

// "grant 3", "extend 3", "refuse 3"
std::string brief(const Decision& decision) {
  const std::string id = std::to_string(decision.task.value);
  switch (decision.kind) {
    case Kind::kGrant:
      return "grant " + id;
    case Kind::kExtend:
      return "extend " + id;
    case Kind::kRefuse:
      return "refuse " + id;
    case Kind::kLeave:
      return "leave " + id;
  }
  return "?";
}

// A scheduler whose sessions are jobs of their own.
struct Case {
  explicit Case(const char* policy = "mgb-warps", std::vector<DeviceSpec> devices = p100s(1), Options options = {})
      : scheduler(policy_named(policy), std::move(devices), options) {}

  void open(uint64_t session, Bytes budget = {}, uint64_t user = 0) {
    scheduler.session_opened({session}, {session}, "p100", budget, now, {user});
  }
  void arrive(uint64_t task, uint64_t session, Bytes memory, uint32_t virtual_device = 0) {
    scheduler.task_arrived({{task}, {session}, {session}, virtual_device, "", memory, grid(56)}, now);
  }
  void open_and_arrive(uint64_t id, Bytes memory) {
    open(id);
    arrive(id, id, memory);
  }
  // What is decided now, in short; whole in `last`.
  std::vector<std::string> decide() {
    last = scheduler.decisions(now);
    std::vector<std::string> all;
    for (const Decision& decision : last) all.push_back(brief(decision));
    return all;
  }
  Bytes free(uint64_t device = 0) const { return scheduler.pool().free({device}); }

  TimePoint now = at(0);
  Scheduler scheduler;
  std::vector<Decision> last;
};

TEST(Queue, GrantsWhatFitsAndSaysWhy) {
  Case it;
  it.open_and_arrive(1, gib(4));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  EXPECT_EQ(it.last[0].device, DeviceId{0});
  EXPECT_EQ(it.last[0].memory, gib(4));
  EXPECT_THAT(it.last[0].reason, HasSubstr("fewest warps"));
  EXPECT_EQ(it.free(), gib(12));
  EXPECT_THAT(it.decide(), IsEmpty());
}

TEST(Queue, WaitsUntilMemoryReturns) {
  Case it;
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(10));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  ASSERT_EQ(it.scheduler.waiting().size(), 1u);
  EXPECT_THAT(it.scheduler.waiting()[0].why, HasSubstr("needs 10 GiB; most is free on device 0: 6 GiB"));
  EXPECT_EQ(it.scheduler.waiting()[0].cause, WaitCause::kMemory);
  it.now = at(500);
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2"));
  EXPECT_EQ(it.last[0].waited, std::chrono::milliseconds(500));
}

TEST(Queue, SaysThatSmsAreWaitedForWhereMemoryIsFree) {
  Case it("mgb-sm");
  it.open(1);
  it.open(2);
  for (const uint64_t task : {1, 2})
    it.scheduler.task_arrived({{task}, {task}, {task}, 0, "", gib(1), grid(448)}, it.now);  // fills the device
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  EXPECT_EQ(it.scheduler.waiting()[0].cause, WaitCause::kSms);
}

// Device 0 has memory and no SMs; device 1 has both, and is kept for one that waits for more of its memory.
TEST(Queue, AReservationIsWhatKeepsWhoWouldHaveSmsThere) {
  Case it("mgb-sm", p100s(2));
  const auto arrive = [&it](uint64_t id, Bytes memory, uint64_t blocks) {
    it.open(id);
    it.scheduler.task_arrived({{id}, {id}, {id}, 0, "", memory, grid(blocks)}, it.now);
  };
  arrive(1, gib(10), 448);
  arrive(2, gib(8), 56);
  EXPECT_THAT(it.decide(), ElementsAre("grant 1", "grant 2"));
  arrive(3, gib(10), 1);  // device 0 lacks 4 GiB, device 1 lacks 2
  EXPECT_THAT(it.decide(), IsEmpty());
  it.now = at(3000);
  arrive(4, gib(1), 56);
  EXPECT_THAT(it.decide(), IsEmpty());
  ASSERT_EQ(it.scheduler.devices()[1].reserved_for, SessionId{3});
  EXPECT_EQ(it.scheduler.waiting()[1].cause, WaitCause::kReservation);
  EXPECT_THAT(it.scheduler.waiting()[1].why, HasSubstr("device 1 is reserved for an older request"));
  arrive(5, gib(1), 448);  // for which device 1 has no room either
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_EQ(it.scheduler.waiting()[2].cause, WaitCause::kSms);
}

TEST(Outside, MemoryThatOthersUseIsNotPromised) {
  Case it;
  it.scheduler.outside_memory({0}, gib(10), it.now);
  it.open_and_arrive(1, gib(8));
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_THAT(it.scheduler.waiting()[0].why, HasSubstr("10 GiB are used by processes outside of heddled"));
  EXPECT_EQ(it.scheduler.devices()[0].outside, gib(10));
  it.scheduler.outside_memory({0}, {}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
}

TEST(Outside, WhatIsPromisedStaysAndWhatReturnsIsKept) {
  Case it;
  it.open_and_arrive(1, gib(12));
  it.decide();
  it.scheduler.outside_memory({0}, gib(10), it.now);
  EXPECT_EQ(it.free(), gib(0));
  EXPECT_EQ(it.scheduler.devices()[0].outside, gib(4));
  it.scheduler.memory_freed({1}, gib(8), it.now);
  EXPECT_EQ(it.free(), gib(2));
  EXPECT_EQ(it.scheduler.devices()[0].outside, gib(10));
}

// Two that wait for each other are a deadlock; one that waits for somebody outside is none.
TEST(Outside, WaitingForItIsNoDeadlock) {
  Case it;
  it.open_and_arrive(1, gib(6));
  it.decide();
  it.scheduler.outside_memory({0}, gib(10), it.now);
  it.scheduler.extension_requested({1}, gib(2), it.now);
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_THAT(it.scheduler.waiting()[0].why, HasSubstr("outside of heddled"));
  it.scheduler.outside_memory({0}, gib(1), it.now);
  EXPECT_THAT(it.decide(), ElementsAre("extend 1"));
}

TEST(Queue, OlderGoesFirstWhenBothFit) {
  Case it;
  it.open_and_arrive(1, gib(16));
  it.decide();
  it.open_and_arrive(3, gib(9));
  it.open_and_arrive(2, gib(9));
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
}

TEST(Queue, SmallOnesBackfillUntilTheOldestIsOfAge) {
  Case it;
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(12));  // waits for 1
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  it.now = at(1999);
  it.open_and_arrive(3, gib(1));
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
  EXPECT_EQ(it.scheduler.next_deadline(), at(2000));
  it.now = at(2000);
  it.open_and_arrive(4, gib(1));
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_EQ(it.scheduler.devices()[0].reserved_for, SessionId{2});
  EXPECT_THAT(it.scheduler.waiting()[1].why, HasSubstr("device 0 is reserved for an older request"));
  EXPECT_EQ(it.scheduler.waiting()[0].cause, WaitCause::kMemory);
  EXPECT_EQ(it.scheduler.waiting()[1].cause, WaitCause::kReservation);
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2", "grant 4"));
}

TEST(Queue, ReservationLeavesTheOtherDevicesOpen) {
  Case it("mgb-warps", p100s(2));
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(12));
  it.decide();
  it.open_and_arrive(3, gib(14));  // device 0 lacks 8 GiB, device 1 lacks 10
  it.decide();
  it.now = at(3000);
  it.open_and_arrive(4, gib(3));
  EXPECT_THAT(it.decide(), ElementsAre("grant 4"));
  EXPECT_EQ(it.last[0].device, DeviceId{1});
  EXPECT_EQ(it.scheduler.devices()[0].reserved_for, SessionId{3});
}

TEST(Queue, ReservationEndsWhenItsHolderIsCancelled) {
  Case it;
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(12));
  it.decide();
  it.now = at(3000);
  it.open_and_arrive(3, gib(1));
  EXPECT_THAT(it.decide(), IsEmpty());
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
}

TEST(Queue, SessionThatHoldsSomethingPassesAReservation) {
  Case it;
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(12));
  it.decide();
  it.now = at(3000);
  it.scheduler.extension_requested({1}, gib(2), it.now);  // 2 waits for just this task to get on
  EXPECT_THAT(it.decide(), ElementsAre("extend 1"));
}

TEST(Extensions, GoBeforeTasksOfTheSameAgeAndInOrder) {
  Case it;
  it.open_and_arrive(1, gib(1));
  it.open_and_arrive(2, gib(15));
  it.decide();
  it.now = at(10);
  it.open_and_arrive(3, gib(10));
  it.scheduler.extension_requested({1}, gib(5), it.now);
  it.scheduler.extension_requested({1}, gib(1), it.now);
  EXPECT_THAT(it.decide(), IsEmpty());
  it.scheduler.task_ended({2}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("extend 1", "extend 1"));
  EXPECT_EQ(it.last[0].memory, gib(5));
  EXPECT_EQ(it.last[1].memory, gib(1));
  EXPECT_EQ(it.free(), gib(9));
}

TEST(Extensions, OfAWaitingTaskComeAfterItsGrant) {
  Case it;
  it.open_and_arrive(1, gib(16));
  it.open_and_arrive(2, gib(2));
  it.scheduler.extension_requested({2}, gib(3), it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  it.scheduler.session_closed({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2", "extend 2"));
}

TEST(Refusals, MoreThanAnyDeviceHoldsNamesBothSizes) {
  Case it("mgb-warps", p100s(2, gib(16), gib(1)));
  it.open(1, gib(100));
  it.arrive(1, 1, gib(16));
  EXPECT_THAT(it.decide(), ElementsAre("refuse 1"));
  EXPECT_EQ(it.last[0].error, ErrorCode::kOutOfMemory);
  EXPECT_EQ(it.last[0].reason, "16 GiB asked for, more than any device of model p100 can ever hold: 15 GiB");
  it.arrive(2, 1, gib(10));
  it.scheduler.extension_requested({2}, gib(6), it.now);  // fits a device by itself, but not beside its task
  EXPECT_THAT(it.decide(), ElementsAre("grant 2", "refuse 2"));
}

TEST(Refusals, ExtensionBeyondTheDeviceIsRefusedAtOnce) {
  Case it;
  it.open(1, gib(100));
  it.arrive(1, 1, gib(10));
  it.decide();
  it.scheduler.extension_requested({1}, gib(7), it.now);
  EXPECT_THAT(it.decide(), ElementsAre("refuse 1"));
  EXPECT_THAT(it.last[0].reason, HasSubstr("more than device 0 can ever hold: 16 GiB, and the task has 10 GiB there"));
}

TEST(Refusals, OverTheJobsBudgetNamesIt) {
  Case it;
  it.scheduler.session_opened({1}, {7}, "p100", gib(4), it.now);
  it.scheduler.session_opened({2}, {7}, "p100", {}, it.now);
  it.arrive(1, 1, gib(3));
  it.arrive(2, 2, gib(2));
  EXPECT_THAT(it.decide(), testing::UnorderedElementsAre("grant 1", "refuse 2"));
  EXPECT_EQ(it.last[0].error, ErrorCode::kLimitExceeded);
  EXPECT_THAT(it.last[0].reason, HasSubstr("job 7's budget of 4 GiB"));
  it.scheduler.memory_freed({1}, gib(2), it.now);
  it.arrive(3, 2, gib(2));
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
  EXPECT_EQ(it.scheduler.budget({1})->live, gib(3));
}

TEST(Refusals, DefaultBudgetIsTheLargestDeviceLessAContext) {
  auto devices = p100s(2, gib(16), gib(1));
  devices[0].memory = gib(8);
  Case it("mgb-warps", devices);
  it.open(1);
  EXPECT_EQ(it.scheduler.budget({1})->budget, gib(15));
}

TEST(Refusals, UnknownModelSessionAndTaskAreClearOrIgnored) {
  Case it;
  it.open(1);
  it.scheduler.task_arrived({{1}, {1}, {1}, 0, "h100", gib(1), {}}, it.now);
  it.arrive(2, 99, gib(1));
  EXPECT_THAT(it.decide(), ElementsAre("refuse 1", "refuse 2"));
  EXPECT_THAT(it.last[0].reason, HasSubstr("no device of model 'h100'; the pool has p100"));
  EXPECT_EQ(it.last[1].error, ErrorCode::kNotFound);
  it.scheduler.task_ended({5}, it.now);
  it.scheduler.memory_freed({5}, gib(1), it.now);
  it.scheduler.extension_requested({5}, gib(1), it.now);
  it.scheduler.compute_grew({5}, grid(1), it.now);
  it.scheduler.session_closed({5}, it.now);
  EXPECT_THAT(it.decide(), IsEmpty());
}

TEST(Sessions, ClosingReturnsWhatRunsAndForgetsWhatWaits) {
  Case it;
  it.open(1);
  it.arrive(1, 1, gib(10));
  it.decide();
  it.open(2);
  it.arrive(2, 2, gib(12));
  it.decide();
  it.scheduler.session_closed({2}, it.now);
  EXPECT_THAT(it.scheduler.waiting(), IsEmpty());
  it.scheduler.session_closed({1}, it.now);
  EXPECT_EQ(it.free(), gib(16));
  EXPECT_THAT(it.decide(), IsEmpty());
}

TEST(Sessions, WaitingTaskThatFreesAsksForLess) {
  Case it;
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(8));
  it.decide();
  it.scheduler.memory_freed({2}, gib(2), it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2"));
  EXPECT_EQ(it.last[0].memory, gib(6));
}

TEST(Oblivious, CgRefusesAtOnceWhatIsNotFree) {
  Case it("cg:2");
  it.open_and_arrive(1, gib(10));
  it.open_and_arrive(2, gib(10));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1", "refuse 2"));
  EXPECT_EQ(it.last[1].error, ErrorCode::kOutOfMemory);
  EXPECT_THAT(it.last[1].reason, HasSubstr("needs 10 GiB there, 6 GiB of 16 GiB is free"));
  it.scheduler.extension_requested({1}, gib(6), it.now);
  it.arrive(3, 2, gib(1));
  EXPECT_THAT(it.decide(), ElementsAre("extend 1", "refuse 3"));
  it.open_and_arrive(4, gib(1));  // 2 keeps its place, though it holds no memory
  EXPECT_THAT(it.decide(), IsEmpty());
  it.scheduler.session_closed({2}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("refuse 4"));
}

TEST(Oblivious, CgAssignsAtFirstUseAndWaitsForAPlace) {
  Case it("cg:1", p100s(1, gib(16), gib(1)));
  it.open(1);
  it.open(2);
  it.arrive(1, 1, gib(15));
  it.arrive(2, 2, gib(1));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  EXPECT_EQ(it.free(), gib(0));
  EXPECT_THAT(it.scheduler.waiting()[0].why, HasSubstr("places"));
  EXPECT_EQ(it.scheduler.waiting()[0].cause, WaitCause::kSeat);
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_EQ(it.free(), gib(15));  // the place stays the session's, with its context
  it.scheduler.session_closed({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2"));
}

TEST(Oblivious, SaKeepsTheDeviceForAllSessionsOfTheJob) {
  Case it("sa", p100s(1));
  it.scheduler.session_opened({1}, {7}, "p100", {}, it.now);
  it.scheduler.session_opened({2}, {7}, "p100", {}, it.now);
  it.open(3);
  it.arrive(1, 1, gib(2));
  it.arrive(2, 2, gib(2));
  it.arrive(3, 3, gib(2));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1", "grant 2"));
  it.scheduler.session_closed({1}, it.now);
  EXPECT_THAT(it.decide(), IsEmpty());
  it.scheduler.session_closed({2}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
}

TEST(Adoption, PutsARunningTaskBackWithoutADecision) {
  Case it("mgb-sm");
  it.open(1);
  const TaskRequest running{{1}, {1}, {1}, 0, "", gib(10), grid(448)};
  ASSERT_TRUE(it.scheduler.adopt(running, {0}, it.now));
  it.open_and_arrive(2, gib(1));
  EXPECT_THAT(it.decide(), IsEmpty());
  EXPECT_EQ(it.free(), gib(6));
  it.scheduler.task_ended({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2"));
}

TEST(Adoption, RefusesWhatCannotBeTrue) {
  Case it;
  it.open(1);
  EXPECT_EQ(it.scheduler.adopt({{1}, {9}, {9}, 0, "", gib(1), {}}, {0}, it.now).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(it.scheduler.adopt({{1}, {1}, {1}, 0, "", gib(1), {}}, {5}, it.now).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(it.scheduler.adopt({{1}, {1}, {1}, 0, "", gib(17), {}}, {0}, it.now).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(it.free(), gib(16));
}

TEST(Adoption, AssignmentIsPutBack) {
  Case it("cg:1", p100s(2));
  it.open(1);
  ASSERT_TRUE(it.scheduler.adopt_assignment({1}, 0, {1}, it.now));
  it.arrive(1, 1, gib(1));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  EXPECT_EQ(it.last[0].device, DeviceId{1});
}

TEST(StartApart, TasksGoTogetherToDevicesOfTheirOwnOrNotAtAll) {
  Case c("mgb-warps", p100s(2));
  c.open(1);
  const auto task = [](uint64_t id, Bytes memory, uint32_t virtual_device) {
    return TaskRequest{{id}, {1}, {1}, virtual_device, "", memory, grid(56)};
  };
  EXPECT_TRUE(c.scheduler.could_start_apart({task(1, gib(6), 0), task(2, gib(6), 1)}));
  EXPECT_FALSE(c.scheduler.could_start_apart({task(1, gib(6), 0), task(2, gib(20), 1)})) << "no device is so large";
  EXPECT_FALSE(c.scheduler.could_start_apart({task(1, gib(1), 0), task(2, gib(1), 1), task(3, gib(1), 2)}))
      << "two devices";
  EXPECT_EQ(c.free(0), gib(16)) << "nothing was taken";
  EXPECT_THAT(c.decide(), IsEmpty());

  c.arrive(1, 1, gib(6));
  EXPECT_THAT(c.decide(), ElementsAre("grant 1"));
  EXPECT_TRUE(c.scheduler.could_start_apart({task(2, gib(4), 1)})) << "on the other device";
  c.open_and_arrive(7, gib(14));
  EXPECT_THAT(c.decide(), ElementsAre("grant 7"));
  EXPECT_FALSE(c.scheduler.could_start_apart({task(2, gib(4), 1)})) << "it would fit beside the first";
}

TEST(StartApart, NotWhileOthersWaitNorOverTheBudgetNorUnderAPolicyThatAssignsJobs) {
  const TaskRequest first{{1}, {1}, {1}, 0, "", gib(1), grid(1)}, second{{2}, {1}, {1}, 1, "", gib(1), grid(1)};
  Case waiting("mgb-warps", p100s(2));
  waiting.open(1);
  for (uint64_t session = 2; session < 5; ++session) waiting.open_and_arrive(session, gib(12));
  waiting.decide();
  EXPECT_FALSE(waiting.scheduler.could_start_apart({first, second}));

  Case tight("mgb-warps", p100s(2));
  tight.open(1, Bytes{3 * kGiB / 2});
  EXPECT_FALSE(tight.scheduler.could_start_apart({first, second}));

  Case assigned("sa", p100s(2));
  assigned.open(1);
  EXPECT_FALSE(assigned.scheduler.could_start_apart({first, second}));
}

TEST(Scheduler, TellsWhetherATaskThatArrivesWouldHaveToWait) {
  Case c;
  for (const uint64_t session : {1, 2, 3}) c.open(session);
  const auto task = [](uint64_t id, Bytes memory) { return TaskRequest{{id}, {id}, {id}, 0, "", memory, grid(56)}; };
  EXPECT_TRUE(c.scheduler.could_start(task(1, gib(10))));
  EXPECT_TRUE(c.scheduler.could_start(task(1, gib(100)))) << "refused whatever is given back";
  c.arrive(1, 1, gib(10));
  c.decide();
  EXPECT_TRUE(c.scheduler.could_start(task(2, gib(2))));
  EXPECT_FALSE(c.scheduler.could_start(task(2, gib(10))));
  EXPECT_TRUE(c.scheduler.could_extend({1}, gib(2)));
  EXPECT_FALSE(c.scheduler.could_extend({1}, gib(10)));
  EXPECT_FALSE(c.scheduler.waits_for({0}));
  c.arrive(2, 2, gib(10));
  c.decide();
  EXPECT_TRUE(c.scheduler.waits_for({0}));
  EXPECT_FALSE(c.scheduler.could_start(task(3, gib(1)))) << "somebody waits already";
  EXPECT_FALSE(c.scheduler.could_extend({1}, gib(1)));
  EXPECT_TRUE(c.scheduler.could_extend({2}, gib(1))) << "it does not run, so nothing is decided yet";
}

TEST(Scheduler, TellsWhetherABudgetIsUsedUp) {
  Case c;
  c.open(1, gib(4));
  c.arrive(1, 1, gib(3));
  c.decide();
  EXPECT_FALSE(c.scheduler.could_start({{2}, {1}, {1}, 1, "", gib(2), grid(56)}));
  EXPECT_FALSE(c.scheduler.could_extend({1}, gib(2)));
  EXPECT_TRUE(c.scheduler.could_extend({1}, gib(1)));
}

// Two users on a device of 16 GiB, 8 GiB for each.
struct TwoUsers : ::testing::Test {
  TwoUsers() {
    for (const uint64_t session : {1, 2, 3}) it.open(session, {}, 1000);
    for (const uint64_t session : {4, 5}) it.open(session, {}, 1001);
  }
  Case it{"mgb-warps", p100s(1), Options{.memory_per_user = gib(8)}};
};

TEST_F(TwoUsers, WaitForTheirOwnProgramsAndNotForEachOther) {
  it.arrive(1, 1, gib(5));
  it.arrive(2, 2, gib(4));
  it.arrive(4, 4, gib(4));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1", "grant 4"));
  const auto waiting = it.scheduler.waiting();
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_THAT(waiting[0].why, HasSubstr("4 GiB, and the user's programs hold 5 GiB of the 8 GiB"));
  EXPECT_EQ(waiting[0].cause, WaitCause::kUserLimit);
  it.scheduler.memory_freed({1}, gib(1), it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 2"));
  it.arrive(3, 3, gib(1));
  EXPECT_THAT(it.decide(), IsEmpty());
  it.scheduler.session_closed({1}, it.now);
  EXPECT_THAT(it.decide(), ElementsAre("grant 3"));
}

TEST_F(TwoUsers, KeepNoDeviceFromOthersWhileTheyWaitForTheirOwn) {
  it.arrive(1, 1, gib(8));
  it.arrive(2, 2, gib(7));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1"));
  it.now = at(60'000);
  it.arrive(4, 4, gib(7));
  EXPECT_THAT(it.decide(), ElementsAre("grant 4"));
  EXPECT_FALSE(it.scheduler.devices()[0].reserved_for);
  EXPECT_FALSE(it.scheduler.next_deadline());
}

TEST_F(TwoUsers, AreRefusedWhatCanNeverBeTheirs) {
  it.arrive(1, 1, gib(9));
  EXPECT_THAT(it.decide(), ElementsAre("refuse 1"));
  EXPECT_EQ(it.last[0].error, ErrorCode::kLimitExceeded);
  EXPECT_THAT(it.last[0].reason, HasSubstr("device_memory_per_user"));
}

// Two programs of one user that each hold what the other waits for would wait for ever.
TEST_F(TwoUsers, AreRefusedMoreWhereTheyHoldSomething) {
  it.arrive(1, 1, gib(4));
  it.arrive(2, 2, gib(4));
  EXPECT_THAT(it.decide(), ElementsAre("grant 1", "grant 2"));
  EXPECT_FALSE(it.scheduler.could_extend({1}, gib(1)));
  it.scheduler.extension_requested({1}, gib(1), it.now);
  EXPECT_THAT(it.decide(), ElementsAre(HasSubstr("refuse")));
  EXPECT_EQ(it.last[0].error, ErrorCode::kLimitExceeded);
  it.scheduler.task_ended({2}, it.now);
  it.scheduler.extension_requested({1}, gib(1), it.now);
  EXPECT_THAT(it.decide(), ElementsAre(HasSubstr("extend")));
}

TEST_F(TwoUsers, KeepWhatTheyHoldOverARestart) {
  ASSERT_TRUE(it.scheduler.adopt({{1}, {1}, {1}, 0, "", gib(7), grid(56)}, {0}, it.now));
  it.arrive(2, 2, gib(2));
  EXPECT_THAT(it.decide(), IsEmpty());
}

}  // namespace
}  // namespace heddle::policy
