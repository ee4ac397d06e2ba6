// Workers that die with nothing under way: another one goes on in their place, and the program does not notice.

#include <csignal>

#include "daemon/repeated_deaths.h"
#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

class ResumeTest : public HouseholdTest {
 protected:
  // Until another worker than `old` serves the client.
  pid_t replaced(const TestClient& client, pid_t old) {
    pid_t worker = old;
    house_->wait_for("ps", [&](const Json& ps) {
      for (const Json& session : ps["sessions"]) {
        if (session["session"] != client.welcome().session || session["tasks"].empty()) continue;
        worker = session["tasks"][0].value("worker_pid", old);
      }
      return worker != old;
    });
    return worker;
  }
  pid_t lose_worker(const TestClient& client) {
    const pid_t worker = worker_of(client);
    house_->kill(worker);
    return replaced(client, worker);
  }
  // And no other can be had.
  void lose_worker_for_now(const TestClient& client) {
    const pid_t serving = worker_of(client);
    house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] == 1; });
    house_->fail_workers(true);
    for (const pid_t worker : house_->processes("heddle-worker"))
      if (worker != serving) house_->kill(worker);
    house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] == 0; });
    house_->kill(serving);
    house_->wait_for("ps", [](const Json& ps) {
      const Json& tasks = ps["sessions"][0]["tasks"];
      return !tasks.empty() && tasks[0]["state"] == "resuming";
    });
  }
  void expect_used(Bytes bytes) {
    house_->wait_for("devices", [&](const Json& answer) { return answer["devices"][0]["used"] == bytes.value; });
  }
};

TEST_F(ResumeTest, ATaskGoesOnInAnotherWorker) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  client.fill(client.at(0), 1);
  ASSERT_TRUE(client.wait_completed(1));
  lose_worker(client);
  client.fill(client.at(1), 2);
  ASSERT_TRUE(client.wait_completed(2));
  EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  expect_used(Bytes{8 * kMiB});
  finish(client);
  expect_used(Bytes{});
}

TEST_F(ResumeTest, AsOftenAsItGetsAnywhere) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  for (uint64_t round = 1; round <= 3; ++round) {
    client.fill(client.at(0), 1);
    ASSERT_TRUE(client.wait_completed(round));
    lose_worker(client);
  }
  const auto ps = house_->ask({{"command", "ps"}});
  ASSERT_TRUE(ps);
  EXPECT_EQ((*ps)["sessions"][0]["tasks"][0]["resumptions"], 3);
}

TEST_F(ResumeTest, ASecondCrashAtTheSamePlaceEndsIt) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const pid_t first = worker_of(client);
  house_->signal(first, SIGSEGV);
  house_->signal(replaced(client, first), SIGSEGV);
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 719u);
  EXPECT_THAT(client.error_text(), HasSubstr("the worker before it ended at the same place"));
  expect_used(Bytes{});
}

TEST_F(ResumeTest, WorkersThatAreKilledAtTheSamePlaceAreReplacedForAWhile) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  for (uint32_t death = 1; death < DeathsInPlace::kMostKills; ++death) lose_worker(client);
  house_->kill(worker_of(client));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_THAT(client.error_text(), HasSubstr("soon after each other"));
  expect_used(Bytes{});
}

TEST_F(ResumeTest, WhatTheRingSaysCountsForNothing) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  compute(client);
  client.header().issued = client.header().completed = client.header().committed = client.writer().last_sequence();
  house_->kill(worker_of(client));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 719u);
}

TEST_F(ResumeTest, WhatStandsInTheWayIsShownAndTold) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const auto task = [this] { return (*house_->ask({{"command", "ps"}}))["sessions"][0]["tasks"][0]; };
  EXPECT_EQ(task()["revocable"], true);
  EXPECT_EQ(task()["drained"], true);
  client.record(RecordType::kLimit);
  ASSERT_TRUE(client.wait_completed(1));
  EXPECT_EQ(task()["revocable"], false);
  EXPECT_EQ(task()["drained"], false);
  EXPECT_THAT(task()["not_revocable"].get<std::string>(), HasSubstr("device malloc"));
  house_->kill(worker_of(client));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 719u);
  EXPECT_THAT(client.error_text(), HasSubstr("device malloc"));
}

TEST_F(ResumeTest, WithSharedFaultsNeighboursOfAnIdleWorkerAreUnharmed) {
  start(std::string(kOneDevice) + "shared_faults = true\n");
  TestClient victim = running(Bytes{8 * kMiB}), neighbour = running(Bytes{8 * kMiB});
  const pid_t neighbours = worker_of(neighbour);
  lose_worker(victim);
  neighbour.fill(neighbour.at(0), 1);
  EXPECT_TRUE(neighbour.wait_completed(1));
  EXPECT_EQ(neighbour.header().fault.load(), 0u);
  EXPECT_EQ(worker_of(neighbour), neighbours);
}

TEST_F(ResumeTest, AKeptWorkerThatDiesIsForgotten) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  finish(client);
  house_->kill(worker);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["kept_workers"] == 0; });
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
  EXPECT_EQ(client.header().error.load(), 0u);
}

TEST_F(ResumeTest, AProgramThatEndsBeforeAnotherWorkerIsFoundLeavesNothing) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  lose_worker_for_now(client);
  expect_used(Bytes{8 * kMiB});
  client.socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
  expect_used(Bytes{});
}

TEST_F(ResumeTest, ExtensionsAreGrantedMeanwhile) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  lose_worker_for_now(client);
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{2 * kMiB}));
  client.record(RecordType::kNeed, 2);
  client.fill(client.at(8), 1);
  expect_used(Bytes{10 * kMiB});
  house_->fail_workers(false);
  ASSERT_TRUE(client.wait_completed(2));
}

class ResumeAndRestartTest : public ResumeTest {
 protected:
  void restart() {
    const pid_t old = house_->heddled();
    house_->kill(old);
    house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  }
};

TEST_F(ResumeAndRestartTest, AWorkerThatDiedMeanwhileIsReplaced) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  client.fill(client.at(0), 1);
  ASSERT_TRUE(client.wait_completed(1));
  const pid_t worker = worker_of(client), heddled = house_->heddled();
  house_->signal(heddled, SIGSTOP);
  house_->kill(worker);
  house_->kill(heddled);
  client.fill(client.at(0), 2);
  ASSERT_TRUE(client.wait_completed(2));
  EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  expect_used(Bytes{8 * kMiB});
}

TEST_F(ResumeAndRestartTest, HeddledDiesWhileNobodyServes) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  lose_worker_for_now(client);
  restart();
  house_->fail_workers(false);
  client.fill(client.at(0), 2);
  ASSERT_TRUE(client.wait_completed(1));
  expect_used(Bytes{8 * kMiB});
}

// heddled, the vault and the worker in every order, and again and again.
TEST_F(ResumeAndRestartTest, WhoeverDiesNext) {
  start(kOneDevice);
  TestClient client = running(Bytes{8 * kMiB});
  uint64_t round = 0;
  for (const char* name : {"heddle-worker", "heddled", "heddle-worker", "heddle-vault", "heddle-worker"}) {
    const bool is_worker = std::string(name) == "heddle-worker";
    const pid_t victim = is_worker ? worker_of(client) : house_->processes(name).front();
    house_->kill(victim);
    if (std::string(name) == "heddle-vault")
      house_->wait_for("status", [](const Json& answer) { return answer["vault_replacements"] == 1; });
    client.fill(client.at(0), 2);
    ASSERT_TRUE(client.wait_completed(++round)) << name << client.error_text();
  }
  expect_used(Bytes{8 * kMiB});
}

// The worker dies with its last words unsaid: heddled does not read them.
TEST_F(ResumeTest, WhatAWorkerHadNoTimeToSayIsReadFromItsPage) {
  start(kOneDevice);
  TestClient client = opened();
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  client.record(RecordType::kReset, kMute);
  client.record(RecordType::kFree, 2);
  ASSERT_TRUE(client.wait_completed(2));
  lose_worker(client);
  expect_used(Bytes{8 * kMiB});
  client.record(RecordType::kReset, kMute);
  client.record(RecordType::kFree, 1);
  client.record(RecordType::kTaskEnd, 1);
  ASSERT_TRUE(client.wait_completed(5));
  house_->kill(worker_of(client));
  EXPECT_TRUE(client.wait_binding(Binding::kUnbound));
  expect_used(Bytes{});
  EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
}

}  // namespace
}  // namespace heddle::daemon::testing
