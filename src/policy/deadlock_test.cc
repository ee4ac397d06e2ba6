// Waits that could never end, seen through the scheduler.

#include "policy/deadlock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/scheduler.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Deadlocks {
  explicit Deadlocks(const char* policy, uint64_t devices) : scheduler(policy_named(policy), p100s(devices)) {}

  void open(uint64_t session) { scheduler.session_opened({session}, {session}, "p100", gib(1000), at(0)); }
  // Runs a task that the test expects to be granted.
  void run(uint64_t task, uint64_t session, Bytes memory, uint32_t virtual_device = 0) {
    ask(task, session, memory, virtual_device);
    const auto decided = scheduler.decisions(at(0));
    ASSERT_EQ(decided.size(), 1u);
    ASSERT_EQ(decided[0].kind, Decision::Kind::kGrant) << decided[0].reason;
  }
  void ask(uint64_t task, uint64_t session, Bytes memory, uint32_t virtual_device = 0) {
    scheduler.task_arrived({{task}, {session}, {session}, virtual_device, "", memory, grid(1)}, at(0));
  }
  void extend(uint64_t task, Bytes more) { scheduler.extension_requested({task}, more, at(0)); }
  std::vector<Decision> decide() { return scheduler.decisions(at(0)); }

  Scheduler scheduler;
};

//   device 0 (16):  1 holds 8 and wants 4   2 holds 8 and wants 2
TEST(Deadlock, TwoExtensionsThatWaitForEachOther) {
  Deadlocks it("mgb-warps", 1);
  for (const uint64_t id : {1, 2}) {
    it.open(id);
    it.run(id, id, gib(8));
  }
  it.extend(1, gib(4));
  EXPECT_THAT(it.decide(), IsEmpty());  // 2 may still end
  it.extend(2, gib(2));
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_EQ(decided[0].task, TaskId{2});
  EXPECT_EQ(decided[0].error, ErrorCode::kOutOfMemory);
  EXPECT_THAT(decided[0].reason, HasSubstr("session 1 holds 8 GiB on device 0 and waits for 4 GiB more on device 0"));
  EXPECT_THAT(decided[0].reason, HasSubstr("session 2 holds 8 GiB on device 0 and waits for 2 GiB more on device 0"));
  it.scheduler.task_ended({2}, at(1));
  EXPECT_EQ(it.decide().size(), 1u);  // 1 gets its extension
}

TEST(Deadlock, NoneWhileOneOfThemCanStillEnd) {
  Deadlocks it("mgb-warps", 1);
  for (const uint64_t id : {1, 2, 3}) {
    it.open(id);
    it.run(id, id, gib(5));
  }
  it.extend(1, gib(4));
  it.extend(2, gib(6));
  EXPECT_THAT(it.decide(), IsEmpty());  // 3 returns 5: 1 goes on with 4, ends, and 2 goes on
}

//   session 1: virtual device 0 on device 0 (12 of 16), wants 10 more somewhere
//   session 2: virtual device 0 on device 1 (12 of 16), wants 10 more somewhere
TEST(Deadlock, OverTwoDevicesByTheirSecondTasks) {
  Deadlocks it("mgb-warps", 2);
  for (const uint64_t id : {1, 2}) {
    it.open(id);
    it.run(id, id, gib(12));
  }
  it.ask(11, 1, gib(10), 1);
  EXPECT_THAT(it.decide(), IsEmpty());
  it.ask(12, 2, gib(10), 1);
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].task, TaskId{12});
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
}

TEST(Deadlock, SessionThatOnlyWaitsBehindOneIsSpared) {
  Deadlocks it("mgb-warps", 1);
  for (const uint64_t id : {1, 2}) {
    it.open(id);
    it.run(id, id, gib(8));
  }
  it.open(3);
  it.ask(3, 3, gib(4));
  it.extend(1, gib(4));
  it.extend(2, gib(2));
  it.open(4);
  it.ask(4, 4, gib(1));  // the youngest of all
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].task, TaskId{2});
  EXPECT_EQ(it.scheduler.waiting().size(), 3u);
}

//   device 0 is full with 1 and 2, which want more of it; 3 holds device 1, which nobody wants, and wants device 0 too
TEST(Deadlock, HolderOutsideTheDeadlockIsSpared) {
  auto devices = p100s(2);
  devices[1].model = "v100";
  Scheduler scheduler(policy_named("mgb-warps"), devices);
  for (const uint64_t id : {1, 2, 3}) scheduler.session_opened({id}, {id}, "p100", gib(1000), at(0));
  scheduler.task_arrived({{1}, {1}, {1}, 0, "p100", gib(8), {}}, at(0));
  scheduler.task_arrived({{2}, {2}, {2}, 0, "p100", gib(8), {}}, at(0));
  scheduler.task_arrived({{3}, {3}, {3}, 0, "v100", gib(8), {}}, at(0));
  ASSERT_EQ(scheduler.decisions(at(0)).size(), 3u);
  scheduler.extension_requested({1}, gib(1), at(1));
  scheduler.extension_requested({2}, gib(1), at(2));
  scheduler.task_arrived({{13}, {3}, {3}, 1, "p100", gib(1), {}}, at(3));
  const auto decided = scheduler.decisions(at(3));
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].task, TaskId{2});
}

TEST(Deadlock, SessionThatStandsInItsOwnWay) {
  Deadlocks it("schedgpu", 1);
  it.open(1);
  it.run(1, 1, gib(10));
  it.ask(2, 1, gib(10), 1);
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_EQ(decided[0].task, TaskId{2});
}

TEST(Deadlock, TwoJobsThatEachOwnADeviceAndWantTheOther) {
  Deadlocks it("sa", 2);
  for (const uint64_t id : {1, 2}) {
    it.open(id);
    it.run(id, id, gib(1));
  }
  it.ask(11, 1, gib(1), 1);
  EXPECT_THAT(it.decide(), IsEmpty());
  it.ask(12, 2, gib(1), 1);
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].kind, Decision::Kind::kRefuse);
  EXPECT_EQ(decided[0].session, SessionId{2});
  EXPECT_THAT(decided[0].reason, HasSubstr("waits for 1 GiB on a device"));
}

TEST(Deadlock, ThroughComputeWhereThatIsHard) {
  Scheduler scheduler(policy_named("mgb-sm"), p100s(1));
  for (const uint64_t id : {1, 2}) {
    scheduler.session_opened({id}, {id}, "p100", {}, at(0));
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", gib(1), grid(224)}, at(0));
  }
  ASSERT_EQ(scheduler.decisions(at(0)).size(), 2u);
  scheduler.task_arrived({{11}, {1}, {1}, 1, "", gib(1), grid(1)}, at(1));
  EXPECT_THAT(scheduler.decisions(at(1)), IsEmpty());
  scheduler.task_arrived({{12}, {2}, {2}, 1, "", gib(1), grid(1)}, at(2));
  const auto decided = scheduler.decisions(at(2));
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].task, TaskId{12});
}

TEST(Deadlock, TwoAtOnceAreBothBroken) {
  Deadlocks it("mgb-warps", 2);
  for (const uint64_t id : {1, 2, 3, 4}) {
    it.open(id);
    it.run(id, id, gib(8));
  }
  for (const uint64_t id : {1, 2, 3, 4}) it.extend(id, gib(1));
  const auto decided = it.decide();
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[0].task, TaskId{4});
  EXPECT_EQ(decided[1].task, TaskId{3});
}

}  // namespace
}  // namespace heddle::policy
