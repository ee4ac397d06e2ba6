// Workers that heddled terminates because a request needs their device, with real processes and workers without
// devices.

#include <csignal>

#include "daemon/testing/termination_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

TEST_F(TerminationTest, ARequestGetsTheDeviceAndBatchGoesOnInAnotherWorker) {
  const pid_t worker = worker_of(*batch_);
  compute(*batch_, kRepeatableLong);
  request();
  ASSERT_TRUE(answered());
  EXPECT_NE(::kill(worker, 0), 0) << "nobody was lent the device while it was there";
  wait_for_lease();
  const Json task = task_of(*batch_);
  EXPECT_EQ(task["terminations"], 1);
  EXPECT_FALSE(task.contains("resumptions")) << "it was no death of its own";
  const Json revoked = job_of(*batch_)["revocations"];
  EXPECT_EQ(revoked["count"], 1);
  EXPECT_EQ(revoked["terminated"], 1);
  EXPECT_GT(revoked["terminated_p99_ns"], 0);
  const auto devices = house_->ask({{"command", "devices"}});
  const Json shown = (*devices)["devices"][0]["revocation"];
  EXPECT_EQ(shown["window_ns"], 2'000'000);
  EXPECT_EQ(shown["bound_ns"], 24'000'000) << "until enough were measured";
  EXPECT_EQ(shown["so_far"]["terminated"], 1);
  expect_batch_ends_well();
}

// At the same place of its log, and quicker than a worker may die of itself.
TEST_F(TerminationTest, AsOftenAsRequestsCome) {
  compute(*batch_, kRepeatableLong);
  for (uint64_t round = 1; round <= 9; ++round) ASSERT_NO_FATAL_FAILURE(terminate(round)) << round;
  const auto devices = house_->ask({{"command", "devices"}});
  const Json shown = (*devices)["devices"][0]["revocation"];
  EXPECT_EQ(shown["measured"], 9);
  EXPECT_EQ(shown["so_far"]["terminated"], 9);
  EXPECT_NE(shown["revocation_ns"], 22'000'000) << "what was measured";
  EXPECT_EQ(shown["bound_ns"], 2'000'000 + shown["revocation_ns"].get<int64_t>());
  expect_batch_ends_well();
}

TEST_F(TerminationTest, WhatWouldNotOutliveItsWorkerDrains) {
  const pid_t worker = worker_of(*batch_);
  compute(*batch_);
  request();
  house_->wait_for("ps", [&](const Json&) { return task_of(*batch_).contains("terminations_refused"); });
  const Json task = task_of(*batch_);
  EXPECT_THAT(task["not_terminated"].get<std::string>(), HasSubstr("under way"));
  EXPECT_EQ(task["lease"]["state"], "draining");
  EXPECT_EQ(worker_of(*batch_), worker);
  EXPECT_EQ(job_of(*batch_)["revocations"]["not_terminated"], 1);
  batch_->host_calls_return();
  ASSERT_TRUE(answered());
  EXPECT_EQ(worker_of(*batch_), worker);
  EXPECT_EQ(job_of(*batch_)["revocations"]["count"], 1);
  EXPECT_EQ(job_of(*batch_)["revocations"]["terminated"], 0);
  expect_batch_ends_well();
}

TEST_F(TerminationTest, ADeathOfItsOwnBehindATerminationIsTheFirstOne) {
  compute(*batch_, kRepeatableLong);
  request();
  ASSERT_TRUE(answered());
  wait_for_terminations(1);
  wait_for_lease();
  const pid_t worker = worker_of(*batch_);
  house_->kill(worker);
  house_->wait_for("ps", [&](const Json&) { return task_of(*batch_).value("resumptions", 0) == 1; });
  expect_batch_ends_well();
}

// What it computes has no end, and so the suspension would have none.
TEST_F(TerminationTest, AJobThatIsBeingSuspendedIsSuspendedThen) {
  compute(*batch_, kRepeatableLong);
  const Json job = job_of(*batch_)["job"];
  ASSERT_TRUE(house_->ask({{"command", "suspend"}, {"job", job}}));
  EXPECT_EQ(task_of(*batch_)["state"], "suspending");
  request();
  ASSERT_TRUE(answered());
  EXPECT_EQ(task_of(*batch_)["state"], "suspended");
  EXPECT_EQ(job_of(*batch_)["revocations"]["terminated"], 1);
  ASSERT_TRUE(house_->ask({{"command", "resume"}, {"job", job}}));
  wait_for_lease();
  expect_batch_ends_well();
}

TEST_F(TerminationTest, TheProgramEndsBeforeAnotherWorkerIsThere) {
  compute(*batch_, kRepeatableLong);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] == 1; });
  house_->fail_workers(true);
  const pid_t serves = worker_of(*batch_), servers = worker_of(*server_);
  for (const pid_t worker : house_->processes("heddle-worker"))
    if (worker != serves && worker != servers) house_->kill(worker);
  request();
  ASSERT_TRUE(answered());
  house_->wait_for("ps", [&](const Json&) { return task_of(*batch_).value("state", "") == "resuming"; });
  batch_->socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["used"] == 8 * kMiB; });
  request();
  EXPECT_TRUE(answered());
}

// A restarted heddled finds a worker that is at work, stopped or dead, or another that waits for its lease; programs
// and books do not notice.
class TerminationAndRestartTest : public TerminationTest, public ::testing::WithParamInterface<useconds_t> {};

TEST_P(TerminationAndRestartTest, HeddledDiesAtAnyMoment) {
  compute(*batch_, kRepeatableLong);
  for (useconds_t round = 0; round < 4; ++round) {  // five deaths within a minute are one too many for the vault
    wait_for_work();
    request();
    ::usleep(GetParam() + 700 * round);
    restart();
    ASSERT_TRUE(server_->resume(house_->socket()));
    ASSERT_TRUE(batch_->resume(house_->socket()));
    ASSERT_TRUE(answered()) << round << server_->error_text() << task_of(*batch_);
  }
  expect_batch_ends_well();
}

// The request is decided 28 ms after it came.
INSTANTIATE_TEST_SUITE_P(Microseconds, TerminationAndRestartTest, ::testing::Values(0, 26'000, 28'000, 30'000));

}  // namespace
}  // namespace heddle::daemon::testing
