// Jobs that are suspended and resumed, with real processes and workers without devices.

#include <csignal>

#include "daemon/testing/suspend_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

TEST_F(SuspendJobTest, ATaskKeepsItsMemoryAndNobodyServesIt) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  client.fill(client.at(0), 1);
  ASSERT_TRUE(client.wait_completed(1));
  suspended();
  EXPECT_FALSE(session_of(client)["tasks"][0].contains("worker_pid"));
  EXPECT_THAT(session_of(client)["tasks"][0]["reason"].get<std::string>(), HasSubstr("heddle resume"));
  EXPECT_EQ((*house_->ask({{"command", "devices"}}))["devices"][0]["workers"], 0);
  expect_used(Bytes{8 * kMiB});
  client.fill(client.at(1), 2);
  resumed();
  ASSERT_TRUE(client.wait_completed(2));
  EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  EXPECT_FALSE(session_of(client)["tasks"][0].contains("resumptions"));
  finish(client);
  expect_used(Bytes{});
}

TEST_F(SuspendJobTest, AgainAndAgainAtTheSamePlace) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  for (int round = 0; round < 3; ++round) {
    suspended();
    resumed();
    wait_for_state("running");
  }
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
}

TEST_F(SuspendJobTest, WhatCannotBeIsToldWithTheJobsNumber) {
  start(kOneDevice);
  EXPECT_THAT(house_->ask({{"command", "suspend"}, {"job", 999}}).error().text, HasSubstr("no job 999"));
  EXPECT_THAT(house_->ask({{"command", "resume"}, {"job", 999}}).error().text, HasSubstr("no job 999"));
  TestClient client = running_in_job(Bytes{8 * kMiB});
  EXPECT_THAT(tell("resume").error().text, HasSubstr("job " + std::to_string(job_) + " is not suspended"));
  suspended();
  EXPECT_THAT(tell("suspend").error().text, HasSubstr("job " + std::to_string(job_) + " is suspended already"));
}

TEST_F(SuspendJobTest, WhereATaskCannotGoOnElsewhereNothingIsSuspended) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  client.record(RecordType::kLimit);
  ASSERT_TRUE(client.wait_completed(1));
  const auto told = tell("suspend");
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().text, HasSubstr("device malloc"));
  EXPECT_THAT(told.error().text, HasSubstr("nothing of it was"));
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(2));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "running");
}

// The obstacle comes while heddled does not look: the worker stays, and the job with it.
TEST_F(SuspendJobTest, AWorkerThatCannotGiveItsTaskUpStays) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  client.record(RecordType::kLimit, kWhenSuspended);
  ASSERT_TRUE(client.wait_completed(1));
  ASSERT_TRUE(tell("suspend"));
  Json job;
  house_->wait_for("ps", [&](const Json&) {
    job = *tell("job");
    return job["suspending_tasks"] == 0;
  });
  EXPECT_EQ(job["suspended"], false);
  EXPECT_THAT(job["not_suspended"].get<std::string>(), HasSubstr("device malloc"));
  EXPECT_EQ(worker_of(client), worker);
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(2));
}

TEST_F(SuspendJobTest, WhatIsUnderWayIsWaitedForAndLostWithItsWorker) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  compute(client);
  for (int asked = 0; asked < 2; ++asked) {
    const auto told = tell("suspend");
    ASSERT_TRUE(told) << told.error().text;
    EXPECT_EQ((*told)["suspending_tasks"], 1);
  }
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspending");
  house_->kill(worker_of(client));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 719u);
  expect_used(Bytes{});
}

TEST_F(SuspendJobTest, TakenBackMeanwhileItGoesOn) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  house_->signal(worker, SIGSTOP);
  ASSERT_TRUE(tell("suspend"));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspending");
  resumed();
  house_->signal(worker, SIGCONT);
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
}

TEST_F(SuspendJobTest, AWorkerThatDiesAtRestIsSuspendedAllTheSame) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  house_->signal(worker, SIGSTOP);
  ASSERT_TRUE(tell("suspend"));
  house_->kill(worker);
  wait_for_state("suspended");
  resumed();
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
}

TEST_F(SuspendJobTest, ATaskThatIsGrantedMeanwhileWaitsForTheResume) {
  start(kOneDevice);
  TestClient first = running_in_job(Bytes{8 * kMiB});
  finish(first);
  ASSERT_TRUE(tell("suspend"));
  ASSERT_TRUE(first.declare(2, first.at(0), Bytes{4 * kMiB}));
  ASSERT_TRUE(first.begin(2));
  wait_for_state("suspended");
  expect_used(Bytes{4 * kMiB});
  resumed();
  EXPECT_TRUE(first.wait_binding(Binding::kBound)) << first.error_text();
}

TEST_F(SuspendJobTest, MemoryThatIsGrantedMeanwhileIsThereAfterTheResume) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  suspended();
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{2 * kMiB}));
  client.record(RecordType::kNeed, 2);
  client.fill(client.at(8), 1);
  expect_used(Bytes{10 * kMiB});
  resumed();
  EXPECT_TRUE(client.wait_completed(2)) << client.error_text();
}

TEST_F(SuspendJobTest, OthersComputeMeanwhile) {
  start(kOneDevice, "[dispatch]\npolicy = \"fs\"\n");
  TestClient client = running_in_job(Bytes{8 * kMiB});
  suspended();
  TestClient other = running(Bytes{8 * kMiB});
  other.fill(other.at(0), 1);
  EXPECT_TRUE(other.wait_completed(1));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspended");
}

TEST_F(SuspendJobTest, CancelledMeanwhileItLeavesNothing) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  suspended();
  ASSERT_TRUE(tell("cancel"));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  expect_used(Bytes{});
  EXPECT_THAT(tell("resume").error().text, HasSubstr("was cancelled"));
}

TEST_F(SuspendJobTest, AProgramThatEndsMeanwhileLeavesNothing) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  suspended();
  client.socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
  expect_used(Bytes{});
}

TEST_F(SuspendJobTest, ItStaysSuspendedOverRestarts) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  suspended();
  restart();
  wait_for_state("suspended");
  expect_used(Bytes{8 * kMiB});
  restart("heddle-vault");
  restart();
  wait_for_state("suspended");
  client.fill(client.at(0), 1);
  resumed();
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
  EXPECT_EQ(client.header().error.load(), 0u);
}

// The job is noted before its worker is told: a heddled that finds the note tells it again.
TEST_F(SuspendJobTest, HeddledDiesBeforeTheWorkerHasHeard) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  house_->signal(worker, SIGSTOP);
  ASSERT_TRUE(tell("suspend"));
  house_->kill(house_->heddled());
  house_->signal(worker, SIGCONT);
  wait_for_state("suspended");
  resumed();
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
}

TEST_F(SuspendJobTest, HeddledDiesWithTheWorker) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  const pid_t worker = worker_of(client);
  house_->signal(worker, SIGSTOP);
  ASSERT_TRUE(tell("suspend"));
  const pid_t heddled = house_->heddled();
  house_->signal(heddled, SIGSTOP);
  house_->kill(worker);
  house_->kill(heddled);
  wait_for_state("suspended");
  restart();
  resumed();
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
}

// It does not hear what the worker says last.
TEST_F(SuspendJobTest, AWorkersLastWordIsSaidAgain) {
  start(kOneDevice);
  TestClient client = running_in_job(Bytes{8 * kMiB});
  ASSERT_TRUE(tell("suspend"));
  house_->kill(house_->heddled());
  wait_for_state("suspended");
  resumed();
  restart();
  client.fill(client.at(0), 1);
  EXPECT_TRUE(client.wait_completed(1)) << client.error_text();
  expect_used(Bytes{8 * kMiB});
}

}  // namespace
}  // namespace heddle::daemon::testing
