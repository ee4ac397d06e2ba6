// Workers that are stopped and then killed, or let go on: real processes, a policy that does as the test says, a clock
// that stands still.

#include "daemon/terminations.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "daemon/proc_file.h"
#include "daemon/spawn.h"
#include "daemon/testing/books.h"
#include "daemon/testing/fake_mps.h"

namespace heddle::daemon {
namespace {

using ::testing::HasSubstr;

class OrderingDispatch : public policy::Dispatch {
 public:
  struct Script {
    std::vector<policy::LeaseOrder> orders;
    int not_terminated = 0;
  };
  explicit OrderingDispatch(Script& script) : script_(script) {}
  void joined(policy::Lessee, const policy::Tenant&, TimePoint) override {}
  void left(policy::Lessee, TimePoint) override {}
  void pending(policy::Lessee, TimePoint) override {}
  void drained(policy::Lessee, TimePoint) override {}
  void served(policy::Lessee, const policy::Service&, TimePoint) override {}
  void returned(policy::Lessee, TimePoint) override {}
  void not_terminated(policy::Lessee, TimePoint) override { ++script_.not_terminated; }
  void decide(TimePoint, std::vector<policy::LeaseOrder>& out) override { out = std::exchange(script_.orders, {}); }
  std::optional<TimePoint> next(TimePoint) const override { return {}; }

 private:
  Script& script_;
};

class TerminationsTest : public ::testing::Test, protected testing::Books {
 protected:
  explicit TerminationsTest(Mps::Options mps = {}) : Books("terminations_test"), mps_(std::move(mps)) {
    clock_.advance(std::chrono::seconds(100));
    registry_.devices.emplace_back();
    leases_.open([this] { return std::make_unique<OrderingDispatch>(script_); });
  }
  ~TerminationsTest() override {
    if (!worker_.process) return;
    kill_process(worker_.process, SIGKILL);
    (void)reap(worker_.process);
  }
  // A session whose task has its device, its lease and a worker, which is a process that does nothing.
  void SetUp() override {
    Session& session = registry_.sessions.emplace(kSession, Session{}).first->second;
    session.id = kSession;
    session.devices.resize(1);
    device().control = std::move(protocol::ControlPage::create()->second);
    device().task = std::make_unique<Task>();
    device().task->state = TaskState::kRunning;
    SpawnOptions options;
    options.program = "/bin/sleep";
    options.arguments = {"1000"};
    auto child = spawn(options);
    ASSERT_TRUE(child) << child.error().text;
    worker_.id = kWorker;
    worker_.state = Worker::State::kBound;
    worker_.session = kSession;
    worker_.pid = child->pid;
    worker_.process = std::move(child->pidfd);
    device().worker = &worker_;
    leases_.joined(session, device());
    script_.orders = {policy::Lend{kLessee}};
    leases_.backlog(session, device());
    leases_.decide();
  }
  Session& session() { return registry_.sessions.at(kSession); }
  VirtualDevice& device() { return session().devices[0]; }
  void order() {
    script_.orders = {policy::Withdraw{kLessee, true}};
    leases_.due(DeviceId{0});
    leases_.decide();
    terminations_.ordered(kSession, 0);
  }
  // How often somebody was told that the worker is off its device.
  int off_device() {
    int count = 0;
    while (const auto event = events_.next()) count += std::holds_alternative<WorkerOffDevice>(*event);
    return count;
  }
  void work_is_under_way() { device().control->note_affected(1); }
  // Time goes by, for the process and by the clock, until nothing is due any more.
  void pass() {
    for (int i = 0; i < 40; ++i) {
      ::usleep(1000);
      clock_.advance(std::chrono::milliseconds(1));
      ASSERT_TRUE(loop_->run_once(Duration{}));
    }
  }

  static constexpr SessionId kSession{1};
  static constexpr WorkerId kWorker{2};
  static constexpr policy::Lessee kLessee{kSession, 0};
  OrderingDispatch::Script script_;
  Leases leases_{shared_};
  Mps mps_;
  Workers workers_{shared_, {}, mps_};
  Worker& worker_ = registry_.workers[kWorker];
  Terminations terminations_{shared_, workers_, leases_};
};

TEST_F(TerminationsTest, AWorkerThatItsTaskOutlivesIsKilled) {
  order();
  EXPECT_TRUE(worker_.terminating) << "before anything is done to it";
  EXPECT_FALSE(worker_.killed);
  pass();
  EXPECT_TRUE(worker_.killed);
  EXPECT_TRUE(has_ended(worker_.process));
}

TEST_F(TerminationsTest, OneThatItDoesNotOutliveIsLeftAlone) {
  work_is_under_way();
  order();
  EXPECT_FALSE(worker_.terminating);
  pass();
  EXPECT_FALSE(has_ended(worker_.process));
  EXPECT_EQ(script_.not_terminated, 1);
  EXPECT_EQ(device().terminations.refused, 1u);
}

// A record was on its way to the device when the order came.
TEST_F(TerminationsTest, WhatItWasAboutToHandOverKeepsItsWorkerAlive) {
  order();
  work_is_under_way();
  pass();
  EXPECT_FALSE(worker_.killed);
  EXPECT_FALSE(worker_.terminating);
  EXPECT_FALSE(is_stopped(worker_.pid));
  EXPECT_FALSE(has_ended(worker_.process));
  EXPECT_THAT(device().terminations.why, HasSubstr("under way"));
  EXPECT_EQ(script_.not_terminated, 1);
}

TEST_F(TerminationsTest, ALeaseThatComesBackMeanwhileSavesItsWorker) {
  order();
  protocol::Lease lease;
  ASSERT_TRUE(device().control->read_lease(lease));
  leases_.returned(session(), device(), lease.generation);
  pass();
  EXPECT_FALSE(worker_.terminating);
  EXPECT_FALSE(is_stopped(worker_.pid));
  EXPECT_FALSE(has_ended(worker_.process));
  EXPECT_EQ(script_.not_terminated, 0);
}

TEST_F(TerminationsTest, WithoutAnOrderNothingIsDone) {
  terminations_.ordered(kSession, 0);
  EXPECT_FALSE(worker_.terminating);
}

// heddled has died between the note and the kill: the worker is stopped, and the new policy has ordered nothing.
TEST_F(TerminationsTest, WhatAHeddledBeforeThisOneHasBegunIsDone) {
  worker_.terminating = true;
  kill_process(worker_.process, SIGSTOP);
  terminations_.ordered(kSession, 0);
  pass();
  EXPECT_TRUE(worker_.killed);
  EXPECT_TRUE(has_ended(worker_.process));
}

TEST_F(TerminationsTest, OrIsTakenBackAndItsWorkerGoesOn) {
  worker_.terminating = true;
  kill_process(worker_.process, SIGSTOP);
  work_is_under_way();
  terminations_.ordered(kSession, 0);
  pass();
  EXPECT_FALSE(worker_.terminating);
  EXPECT_FALSE(is_stopped(worker_.pid));
  EXPECT_FALSE(has_ended(worker_.process));
}

TEST_F(TerminationsTest, OneThatHasDiedMeanwhileIsNoneToKill) {
  order();
  kill_process(worker_.process, SIGKILL);
  pass();
  EXPECT_FALSE(worker_.killed);
  EXPECT_EQ(script_.not_terminated, 0);
}

// Where processes have the GPU by turns nobody waits for a process's end.
TEST_F(TerminationsTest, OfAGpuInTimeSlicesTheDeviceIsFreeAtOnce) {
  registry_.devices[0].config.model.kind = DeviceKind::kCuda;
  order();
  pass();
  EXPECT_TRUE(worker_.killed);
  EXPECT_EQ(off_device(), 1);
}

TEST_F(TerminationsTest, OfASoftwareDeviceItIsWhenTheWorkerHasEnded) {
  order();
  pass();
  EXPECT_TRUE(worker_.killed);
  EXPECT_EQ(off_device(), 0);
}

class TerminationsUnderMps : testing::FakeMps, public TerminationsTest {
 protected:
  TerminationsUnderMps() : TerminationsTest(Mps::Options{Mps::find_control(), make_directory(), -1}) {
    const Status started = mps_.start(DeviceId{0}, "GPU-0");
    EXPECT_TRUE(started) << started.error().text;
    for (int look = 0; look < 2000 && mps_.server_numbers(DeviceId{0}).empty(); ++look) ::usleep(5000);
  }
  ~TerminationsUnderMps() override {
    mps_.end();
    std::filesystem::remove_all(directory());
  }
  static std::string directory() { return ::testing::TempDir() + "heddle-terminations-" + std::to_string(::getpid()); }
  static std::string make_directory() {
    std::filesystem::create_directory(directory());
    return directory();
  }
  void take_long() const { make_mute(); }
  void pass_seconds(int count) {
    for (int i = 0; i < 25 * count; ++i) pass();
  }
};

TEST_F(TerminationsUnderMps, TheWorkerIsTakenOffFirst) {
  order();
  for (int i = 0; i < 25 && !has_ended(worker_.process); ++i) pass();
  EXPECT_TRUE(has_ended(worker_.process));
  EXPECT_EQ(off_device(), 1);
}

TEST_F(TerminationsUnderMps, WhereThatTakesLongItRunsAgainMeanwhile) {
  take_long();
  order();
  for (int i = 0; i < 4; ++i) pass();
  EXPECT_TRUE(worker_.killed);
  EXPECT_FALSE(has_ended(worker_.process));
  EXPECT_FALSE(is_stopped(worker_.pid));
  pass_seconds(1);
  EXPECT_TRUE(has_ended(worker_.process));
}

}  // namespace
}  // namespace heddle::daemon
