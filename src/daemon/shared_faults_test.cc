// Faults that a device's programs share, on a software device with `shared_faults`: who goes on, who is tried alone,
// and who gets which error. Workers are fakes, which say what a test has them say.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

class SharedFaultsTest : public HouseholdTest {
 protected:
  void SetUp() override { start(std::string(kOneDevice) + "shared_faults = true\n"); }

  static void fault(TestClient& client, uint64_t how) { client.record(RecordType::kPrefetchModule, how); }
  static void expect_failed(TestClient& client, uint32_t code, const char* text) {
    ASSERT_TRUE(client.wait_binding(Binding::kFailed));
    EXPECT_EQ(client.header().error.load(), code);
    EXPECT_THAT(client.error_text(), HasSubstr(text));
  }
  static void expect_done(TestClient& client) {
    EXPECT_TRUE(client.wait_completed(client.writer().last_sequence()));
    EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
    EXPECT_EQ(client.header().fault.load(), 0u);
  }
  static void expect_served(TestClient& client) {
    client.fill(client.at(0), 1);
    expect_done(client);
  }
  void wait_for_state(const std::string& begin) {
    house_->wait_for("devices", [&](const Json& answer) {
      return answer["devices"][0]["state"].get<std::string>().starts_with(begin);
    });
  }
  void expect_used(Bytes bytes) {
    house_->wait_for("devices", [&](const Json& answer) { return answer["devices"][0]["used"] == bytes.value; });
  }
};

TEST_F(SharedFaultsTest, WhoHadNothingUnderWayGoesOnInAnotherWorker) {
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  idle.fill(idle.at(0), 1);
  ASSERT_TRUE(idle.wait_completed(1));
  const pid_t before = worker_of(idle);
  fault(origin, kForGood);
  expect_failed(origin, 700, "asked for");
  EXPECT_THAT(origin.error_text(), HasSubstr("work of the program's was under way"));
  expect_served(idle);
  EXPECT_NE(worker_of(idle), before);
  expect_used(Bytes{4 * kMiB});
}

TEST_F(SharedFaultsTest, WhoseWorkCannotBeRunAgainGetsTheFaultsCodeAndIsToldWhy) {
  TestClient origin = running(Bytes{4 * kMiB}), busy = running(Bytes{4 * kMiB});
  compute(busy);
  fault(origin, kRepeatable);
  expect_failed(busy, 700, "another program's kernel made an illegal memory access (700)");
  EXPECT_THAT(busy.error_text(), HasSubstr("because work of the program's was under way"));
}

TEST_F(SharedFaultsTest, WhatIsLostWithTheWorkerIsToldToOneThatWasIdle) {
  TestClient origin = running(Bytes{4 * kMiB}), keeps = running(Bytes{4 * kMiB});
  keeps.record(RecordType::kLimit);
  ASSERT_TRUE(keeps.wait_completed(1));
  fault(origin, kForGood);
  expect_failed(keeps, 810, "device malloc");
}

// They lie in the worker that stays for the next task.
TEST_F(SharedFaultsTest, WhoseVariablesAreLostBetweenTwoTasksIsTold) {
  TestClient origin = running(Bytes{4 * kMiB}), between = running(Bytes{4 * kMiB});
  between.record(RecordType::kLimit, kWritesVariables);
  between.record(RecordType::kLimit);
  finish(between);
  fault(origin, kForGood);
  expect_failed(between, 810, "what the program's modules had in their variables");
}

TEST_F(SharedFaultsTest, WhoHasSavedThemBetweenTwoTasksGoesOn) {
  TestClient origin = running(Bytes{4 * kMiB}), between = running(Bytes{4 * kMiB}), plain = running(Bytes{4 * kMiB});
  between.record(RecordType::kLimit, kWritesVariables);
  finish(between);
  finish(plain);
  fault(origin, kForGood);
  for (TestClient* each : {&between, &plain}) {
    ASSERT_TRUE(each->declare(2, each->at(0), Bytes{4 * kMiB}));
    ASSERT_TRUE(each->begin(2));
    EXPECT_TRUE(each->wait_binding(Binding::kBound)) << each->error_text();
  }
}

// Its program may have ended before the device says so.
TEST_F(SharedFaultsTest, AFaultSoonAfterAnotherProgramsEndMayBeThatOnes) {
  TestClient late = running(Bytes{4 * kMiB}), odd = running(Bytes{4 * kMiB});
  finish(late);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["kept_workers"] == 1; });
  fault(odd, kRepeatableOnce);
  expect_done(odd);
  expect_served(odd);
}

TEST_F(SharedFaultsTest, WhoIsAloneHasItsOwnFaultAtOnce) {
  TestClient origin = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(origin);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  EXPECT_EQ(worker_of(origin), worker);
  TestClient next = running(Bytes{4 * kMiB});
  expect_served(next);
}

TEST_F(SharedFaultsTest, WhatTheWorkerHasRefusedIsNobodyElsesBusiness) {
  TestClient origin = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  const pid_t before = worker_of(neighbour);
  fault(origin, kRefused);
  expect_done(origin);
  expect_served(neighbour);
  EXPECT_EQ(worker_of(neighbour), before);
}

// Four at work, whose work can be run again, and one that faults each time.
TEST_F(SharedFaultsTest, SuspectsAreTriedAloneAndTheGuiltyOneIsFound) {
  std::vector<TestClient> busy;
  for (int i = 0; i < 4; ++i) busy.push_back(running(Bytes{4 * kMiB}));
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  for (TestClient& each : busy) compute(each, kRepeatable);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  for (TestClient& each : busy) expect_done(each);
  expect_served(idle);
  for (TestClient& each : busy) expect_served(each);
  wait_for_state("ok");
}

TEST_F(SharedFaultsTest, TwoAreGuiltyAtOnce) {
  TestClient first = running(Bytes{4 * kMiB}), second = running(Bytes{4 * kMiB}), third = running(Bytes{4 * kMiB});
  compute(third, kRepeatable);
  const pid_t heddled = house_->heddled();
  house_->signal(heddled, SIGSTOP);
  fault(first, kRepeatable);
  fault(second, kRepeatable);
  house_->signal(heddled, SIGCONT);
  EXPECT_TRUE(first.wait_fault(700));
  EXPECT_TRUE(second.wait_fault(700));
  expect_done(third);
  expect_served(third);
}

TEST_F(SharedFaultsTest, WhoFaultsOnlyInCompanyIsAcquitted) {
  TestClient odd = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  fault(odd, kRepeatableOnce);
  expect_done(odd);
  expect_served(odd);
  expect_served(neighbour);
}

TEST_F(SharedFaultsTest, WhoIsAtWorkAtThreeFaultsOfNobodyGetsTheError) {
  TestClient odd = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  for (int i = 0; i < 2; ++i) {
    fault(odd, kRepeatableOnce);
    expect_done(odd);
    expect_served(neighbour);
    wait_for_state("ok");
  }
  fault(odd, kRepeatableOnce);
  expect_failed(odd, 700, "at work at 3 such faults within a minute");
  expect_served(neighbour);
}

// Else it would be one three times.
TEST_F(SharedFaultsTest, WhoseWorkIsDoneAndWaitsForItsCommitIsNoSuspect) {
  TestClient done = running(Bytes{4 * kMiB});
  for (int round = 0; round < 3; ++round) {
    TestClient odd = running(Bytes{4 * kMiB});
    compute(done, kShown);
    fault(odd, kRepeatableOnce);
    expect_done(odd);
    expect_done(done);
    wait_for_state("ok");
  }
}

TEST_F(SharedFaultsTest, NobodyElseIsServedDuringATrial) {
  TestClient guilty = running(Bytes{4 * kMiB}), suspect = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(suspect, kRepeatable);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] == 1; });
  house_->fail_workers(true);
  fault(guilty, kRepeatable);
  wait_for_state("in trial");
  TestClient next = begun(Bytes{4 * kMiB});
  const Json ps = *house_->ask({{"command", "ps"}});
  EXPECT_EQ(ps["sessions"][0]["tasks"][0]["state"], "resuming");
  EXPECT_THAT(ps["sessions"][2]["tasks"][0]["wait"]["why"].get<std::string>(), HasSubstr("in trial"));
  house_->fail_workers(false);
  EXPECT_TRUE(guilty.wait_fault(700));
  expect_done(suspect);
  expect_served(idle);
  EXPECT_TRUE(next.wait_binding(Binding::kBound)) << next.error_text();
}

TEST_F(SharedFaultsTest, AWorkerThatDiesAtWorkCostsIdleNeighboursNothing) {
  TestClient victim = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB}), busy = running(Bytes{4 * kMiB});
  compute(victim);
  compute(busy, kRepeatable);
  house_->kill(worker_of(victim));
  expect_failed(victim, 719, "signal 9");
  expect_served(idle);
  expect_done(busy);
}

TEST_F(SharedFaultsTest, ASuspectThatEndsLeavesTheTrialToTheOthers) {
  TestClient suspect = running(Bytes{4 * kMiB});
  compute(suspect, kRepeatable);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    TestClient first = running(Bytes{4 * kMiB});
    first.fill(first.at(0), 1);
    [[maybe_unused]] const bool served = first.wait_completed(1);
    house_->fail_workers(true);
    fault(first, kRepeatable);
    [[maybe_unused]] const ssize_t written = ::write(ready[1], "", 1);
    ::pause();
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  wait_for_state("in trial");
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  house_->fail_workers(false);
  expect_done(suspect);
  expect_served(suspect);
  wait_for_state("ok");
  expect_used(Bytes{4 * kMiB});
  for (const int fd : ready) ::close(fd);
}

// ---- heddled dies ----

class SharedFaultsAndRestartTest : public SharedFaultsTest {
 protected:
  void restart() {
    const pid_t old = house_->heddled();
    house_->kill(old);
    house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  }
};

TEST_F(SharedFaultsAndRestartTest, HeddledDiesWhileNobodyCanBeTried) {
  TestClient guilty = running(Bytes{4 * kMiB}), suspect = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(suspect, kRepeatable);
  house_->fail_workers(true);
  fault(guilty, kRepeatable);
  wait_for_state("in trial");
  restart();
  wait_for_state("in trial");
  house_->fail_workers(false);
  EXPECT_TRUE(guilty.wait_fault(700));
  expect_done(suspect);
  expect_served(idle);
  wait_for_state("ok");
}

// It hears of the fault, and is killed at some moment of what it does then.
struct HeddledDies : SharedFaultsAndRestartTest, ::testing::WithParamInterface<useconds_t> {};

TEST_P(HeddledDies, AtThatMoment) {
  TestClient guilty = running(Bytes{4 * kMiB}), suspect = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(suspect, kRepeatable);
  const pid_t old = house_->heddled();
  fault(guilty, kRepeatable);
  ::usleep(GetParam());
  house_->kill(old);
  house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  EXPECT_TRUE(guilty.wait_fault(700)) << guilty.error_text();
  expect_done(suspect);
  expect_served(idle);
  wait_for_state("ok");
}

INSTANTIATE_TEST_SUITE_P(Microseconds, HeddledDies,
                         ::testing::Values(0, 300, 1000, 2000, 3000, 4500, 6000, 8000, 10000, 15000, 20000, 40000));

TEST_F(SharedFaultsAndRestartTest, TheVaultDiesInATrial) {
  TestClient guilty = running(Bytes{4 * kMiB}), suspect = running(Bytes{4 * kMiB});
  compute(suspect, kRepeatable);
  house_->fail_workers(true);
  fault(guilty, kRepeatable);
  wait_for_state("in trial");
  house_->kill(house_->processes("heddle-vault").front());
  house_->wait_for("status", [](const Json& answer) { return answer["vault_replacements"] == 1; });
  restart();
  house_->fail_workers(false);
  EXPECT_TRUE(guilty.wait_fault(700));
  expect_done(suspect);
}

}  // namespace
}  // namespace heddle::daemon::testing
