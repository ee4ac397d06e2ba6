// What heddled says that a task waits for: the books alone, without processes, and a clock that stands still.

#include "daemon/waits.h"

#include <gmock/gmock.h>

#include "daemon/testing/books.h"
#include "policy/dispatch/table.h"
#include "policy/placement/table.h"

namespace heddle::daemon {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kRoot = 0, kAlice = 1000, kBob = 1001;

class WaitsTest : public ::testing::Test, protected testing::Books {
 protected:
  WaitsTest() : Books("waits_test") {
    for (const uint64_t id : {0, 1}) registry_.devices.emplace_back().id = DeviceId{id};
    shared_.config.dispatch.policy = "fs";
    clock_.advance(std::chrono::seconds(100));
    leases_.open([] { return std::move(policy::make_dispatch("fs")).value(); });
  }
  // A session whose task runs on the device, of a job of its own, whose number is 100 more.
  Session& running(uint64_t id, uid_t owner, double limit = 1, DeviceId on = {0}) {
    Job& job = registry_.jobs[JobId{id + 100}];
    job.id = JobId{id + 100};
    job.tenant.limit = limit;
    Session session;
    session.id = SessionId{id};
    session.job = job.id;
    session.uid = owner;
    session.devices.resize(1);
    VirtualDevice& device = session.devices[0];
    device.control = std::move(protocol::ControlPage::create()->second);
    device.task = std::make_unique<Task>();
    device.task->id = TaskId{id};
    device.task->serial = 1;
    device.task->state = TaskState::kRunning;
    device.task->device = on;
    device.task->granted = clock_.now();
    Session& kept = registry_.sessions.emplace(session.id, std::move(session)).first->second;
    leases_.joined(kept, kept.devices[0]);
    return kept;
  }
  // One whose task waits for memory that another's has.
  Session& behind_another(uint64_t id) {
    Session& session = running(id, kAlice);
    session.devices[0].task->state = TaskState::kWaiting;
    scheduler_.session_opened({9}, {9}, "p100", {}, clock_.now());
    scheduler_.task_arrived({{9}, {9}, {9}, 0, "", Bytes{60 * kMiB}, {}}, clock_.now());
    scheduler_.session_opened({id}, {id + 100}, "p100", {}, clock_.now());
    scheduler_.task_arrived({{id}, {id}, {id + 100}, 0, "", Bytes{60 * kMiB}, {}}, clock_.now());
    EXPECT_EQ(scheduler_.decisions(clock_.now()).size(), 1u);
    return session;
  }
  void has_work(Session& session) {
    leases_.backlog(session, session.devices[0]);
    leases_.decide();
  }
  std::optional<TaskWait> wait(const Session& session, uid_t viewer = kRoot) {
    return Waits(shared_, scheduler_, leases_, viewer).of(session, session.devices[0]);
  }

  policy::Scheduler scheduler_{
      std::move(policy::make_placement("mgb-warps")).value(),
      {{.id = {0}, .name = "P100", .model = "p100", .memory = Bytes{64 * kMiB}, .sms = 56, .sm = {}}}};
  Leases leases_{shared_};
};

TEST_F(WaitsTest, WhoRunsWaitsForNothing) {
  Session& session = running(1, kAlice);
  EXPECT_FALSE(wait(session));
  has_work(session);
  EXPECT_FALSE(wait(session)) << "it holds the lease";
}

TEST_F(WaitsTest, TheLeaseIsAnothersAndTheOtherIsNamed) {
  Session& first = running(1, kAlice);
  Session& second = running(2, kAlice);
  has_work(first);
  has_work(second);
  clock_.advance(std::chrono::milliseconds(3));
  const auto waits = wait(second, kAlice);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->cause, "the lease");
  EXPECT_THAT(waits->why, HasSubstr("fs lends device 0 to job 101 (held)"));
  EXPECT_EQ(clock_.now() - waits->since.value(), std::chrono::milliseconds(3));
}

TEST_F(WaitsTest, WhoWaitForDifferentDevicesAreToldOfTheHoldersOfEach) {
  const DeviceId devices[] = {{0}, {1}};
  std::vector<const Session*> behind;
  for (const DeviceId device : devices) has_work(running(1 + device.value, kAlice, 1, device));
  for (const DeviceId device : devices) {
    Session& session = running(3 + device.value, kAlice, 1, device);
    has_work(session);
    behind.push_back(&session);
  }
  const Waits waits(shared_, scheduler_, leases_, kRoot);
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(waits.of(*behind[0], behind[0]->devices[0])->why, HasSubstr("lends device 0 to job 101 (held)"));
    EXPECT_THAT(waits.of(*behind[1], behind[1]->devices[0])->why, HasSubstr("lends device 1 to job 102 (held)"));
  }
}

TEST_F(WaitsTest, AnotherUsersJobIsNotNamed) {
  Session& first = running(1, kBob);
  Session& second = running(2, kAlice);
  has_work(first);
  has_work(second);
  EXPECT_THAT(wait(second, kAlice)->why, HasSubstr("another user's job"));
  EXPECT_THAT(wait(second, kRoot)->why, HasSubstr("job 101"));
}

// As under token, where it has had its limit.
TEST_F(WaitsTest, ALeaseThatNobodyHas) {
  Session& session = running(1, kAlice, 0.25);
  leases_.backlog(session, session.devices[0]);  // and no decision yet
  EXPECT_EQ(wait(session)->cause, "the lease");
  EXPECT_THAT(wait(session)->why, HasSubstr("fs lends device 0 to nobody now; the job may have 0.25 of it"));
}

TEST_F(WaitsTest, MoreThanTheBudgetWaitsForFrees) {
  Session& session = running(1, kAlice);
  session.budget = Bytes{16 * kMiB};
  session.devices[0].live = Bytes{12 * kMiB};
  session.segments[7].bytes = Bytes{8 * kMiB};
  session.devices[0].task->held_back = {7};
  const auto waits = wait(session);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->cause, "its own frees");
  EXPECT_THAT(waits->why, HasSubstr("needs 8 MiB more; this session has 12 MiB of 16 MiB on this device, until frees"));
}

TEST_F(WaitsTest, AWorkerThatStartsOrDoesNot) {
  Session& session = running(1, kAlice);
  session.devices[0].task->state = TaskState::kStarting;
  EXPECT_EQ(wait(session)->cause, "a worker");
  EXPECT_THAT(wait(session)->why, HasSubstr("a worker of device 0 is starting"));
  registry_.devices[0].starts.failed = 3;
  registry_.devices[0].starts.last_failure = "no such file";
  EXPECT_THAT(wait(session)->why, HasSubstr("workers do not start (3 times): no such file"));
}

TEST_F(WaitsTest, APlacedTaskWaitsForItsProgramUnlessHeddledWasRestarted) {
  Session& session = running(1, kAlice);
  Task& task = *session.devices[0].task;
  task.state = TaskState::kPlaced;
  EXPECT_THAT(wait(session)->why, HasSubstr("heddled was restarted"));
  task.serial = 0;
  EXPECT_FALSE(wait(session));
}

TEST_F(WaitsTest, MemoryThatIsKeptIdleComesBackFirst) {
  Session& session = running(1, kAlice);
  Task& task = *session.devices[0].task;
  task.state = TaskState::kArriving;
  task.arrived = clock_.now();
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(wait(session)->cause, "memory");
  EXPECT_EQ(clock_.now() - wait(session)->since.value(), std::chrono::seconds(1));
}

TEST_F(WaitsTest, TheSchedulersOwnCauseIsTold) {
  Session& session = behind_another(1);
  const auto waits = wait(session);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->cause, "memory");
  EXPECT_EQ(waits->position, 1u);
  EXPECT_EQ(waits->since, clock_.now());
  EXPECT_THAT(waits->why, HasSubstr("needs 60 MiB; most is free on device 0: 4 MiB"));
}

// `devices` asks for no task, and is not to pay for those that wait.
TEST_F(WaitsTest, TheLineIsAskedForWithTheFirstTaskAndOnce) {
  const Waits waits(shared_, scheduler_, leases_, kRoot);
  Session& session = behind_another(1);
  ASSERT_TRUE(waits.of(session, session.devices[0]));
  EXPECT_EQ(waits.of(session, session.devices[0])->position, 1u);
  scheduler_.task_ended({9}, clock_.now());
  EXPECT_EQ(scheduler_.decisions(clock_.now()).size(), 1u);
  EXPECT_EQ(waits.of(session, session.devices[0])->position, 1u);
}

}  // namespace
}  // namespace heddle::daemon
