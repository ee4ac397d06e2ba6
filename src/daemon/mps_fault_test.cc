// What heddled does about a fault under MPS. The GPU is the driver's for tests, its MPS a control program and a server
// that the tests bring, workers are fakes: heddled, its vault and its keeper are real.

#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "daemon/testing/mps_fixture.h"
#include "daemon/workers.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

constexpr const char* kNothingIsTried = "[durability]\nlevel = \"off\"\n";

using MpsFaultTest = MpsGpuTest;

TEST_F(MpsFaultTest, ANeighbourThatIsIdleGoesOnInAnotherWorker) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  const pid_t neighbour = worker_of(1), server = mps_.servers().front();
  fault(origin);
  expect_failed(origin, 700, "asked for");
  expect_served(idle);
  expect_gpu_serves();
  EXPECT_FALSE(is_there(neighbour));
  EXPECT_FALSE(is_there(server));
}

TEST_F(MpsFaultTest, ANeighbourThatComputesGetsTheFaultsCode) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient origin = running(Bytes{4 * kMiB}), busy = running(Bytes{4 * kMiB});
  compute(busy);
  fault(origin);
  expect_failed(busy, 700, "another program's kernel made an illegal memory access (700)");
  EXPECT_THAT(busy.error_text(), HasSubstr("because work of the program's was under way"));
  expect_gpu_serves();
}

TEST_F(MpsFaultTest, OneThatIsAloneHasItsFaultAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient origin = running(Bytes{4 * kMiB});
  fault(origin, kRepeatable);
  expect_failed(origin, 700, "asked for");
  expect_gpu_serves();
}

// The workers of a trial are no clients of MPS, and show what they find themselves.
TEST_F(MpsFaultTest, SuspectsAreTriedOutsideOfMps) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient busy = running(Bytes{4 * kMiB}), origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(busy, kRepeatable);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  expect_served(busy);
  expect_served(idle);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["state"] == "ok"; });
  goes_on_under_mps(busy);
  goes_on_under_mps(idle);
  EXPECT_FALSE(is_mps_client(worker_of(origin)));
}

TEST_F(MpsFaultTest, SuspectsAreTriedAtOnceAndOthersServedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient one = running(Bytes{4 * kMiB}), origin = running(Bytes{4 * kMiB}), two = running(Bytes{4 * kMiB}),
             idle = running(Bytes{4 * kMiB});
  for (TestClient* busy : {&one, &two}) compute(*busy, kRepeatableLong);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  house_->wait_for("ps", [&](const Json& ps) {
    return ps["sessions"][0]["tasks"][0]["state"] == "in trial" && ps["sessions"][2]["tasks"][0]["state"] == "in trial";
  });
  expect_served(idle);
  EXPECT_TRUE(is_mps_client(worker_of(idle)));
  for (TestClient* busy : {&one, &two}) {
    EXPECT_FALSE(is_mps_client(worker_of(*busy)));
    busy->host_calls_return();
    expect_served(*busy);
  }
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["state"] == "ok"; });
  for (TestClient* busy : {&one, &two}) goes_on_under_mps(*busy);
}

// Some workers stand ready, and more are on their way for a while. Who could have one waits for the others.
TEST_F(MpsFaultTest, TrialsBeginTogether) {
  ASSERT_NO_FATAL_FAILURE(start_gpu("[durability]\nlevel = \"full\"\n"));
  house_->slow_workers(std::chrono::milliseconds(200));
  TestClient origin = running(Bytes{4 * kMiB});
  std::vector<TestClient> busy;
  for (int i = 0; i < 5; ++i) busy.push_back(running(Bytes{4 * kMiB}));
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] >= 4; });
  for (TestClient& client : busy) compute(client, kRepeatableLong);
  const TimePoint began = MonotonicClock().now();
  fault(origin, kRepeatable);
  size_t served = 0;
  house_->wait_for("ps", [&](const Json& ps) {
    served = 0;
    for (const Json& session : ps["sessions"]) {
      const Json& task = session["tasks"][0];
      served += task["state"] == "in trial" && task.value("worker_pid", 0) > 1;
    }
    return served != 0;
  });
  if (MonotonicClock().now() - began > std::chrono::milliseconds(500)) GTEST_SKIP() << "the machine is too slow";
  EXPECT_GE(served, busy.size()) << "the faulty one may have had its error already";
}

TEST_F(MpsFaultTest, WorkersForTrialsStandReadyWhereWorkCanBeRunAgain) {
  ASSERT_NO_FATAL_FAILURE(start_gpu("[durability]\nlevel = \"full\"\n"));
  TestClient busy = running(Bytes{4 * kMiB});
  wait_until_ready(0);  // one that is alone is never tried
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  wait_until_ready(4);
  const std::set<pid_t> ready = outside_mps();
  compute(busy, kRepeatableLong);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  house_->wait_for("ps", [](const Json& ps) { return ps["sessions"][0]["tasks"][0]["state"] == "in trial"; });
  EXPECT_TRUE(ready.contains(worker_of(busy)));
  EXPECT_TRUE(ready.contains(worker_of(origin)));
  expect_served(idle);
  goes_on_under_mps(idle);
  busy.host_calls_return();
  expect_served(busy);
  goes_on_under_mps(busy);
}

TEST_F(MpsFaultTest, ThoseThatAreNotTriedNeedNotWaitForMps) {
  ASSERT_NO_FATAL_FAILURE(start_gpu("[durability]\nlevel = \"full\"\n"));
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  wait_until_ready(3);
  const std::set<pid_t> ready = outside_mps();
  mps_.go_away();
  fault(origin, kRepeatable);
  house_->wait_for("ps", [&](const Json&) { return ready.contains(worker_of(idle)); });
  expect_served(idle);
  mps_.come_back();
  goes_on_under_mps(idle);
}

// As nobody is tried there, it serves who waits for MPS.
TEST_F(MpsFaultTest, OneDoesWhereNoWorkCan) {
  ASSERT_NO_FATAL_FAILURE(start_gpu(kNothingIsTried));
  TestClient origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  wait_until_ready(1);
  const std::set<pid_t> ready = outside_mps();
  mps_.go_away();
  fault(origin);
  expect_failed(origin, 700, "asked for");
  house_->wait_for("ps", [&](const Json&) { return ready.contains(worker_of(idle)); });
  expect_served(idle);
  mps_.come_back();
  goes_on_under_mps(idle);
}

// Theirs are not MPS's processes.
TEST_F(MpsFaultTest, AFaultUnderMpsIsNoBusinessOfThoseThatAreTried) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient busy = running(Bytes{4 * kMiB}), origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(busy, kRepeatableLong);
  fault(origin, kRepeatable);
  EXPECT_TRUE(origin.wait_fault(700));
  house_->wait_for("ps", [](const Json& ps) { return ps["sessions"][0]["tasks"][0]["state"] == "in trial"; });
  expect_served(idle);
  const pid_t tried = worker_of(busy);
  fault(idle);
  expect_failed(idle, 700, "asked for");
  EXPECT_EQ(worker_of(busy), tried);
  busy.host_calls_return();
  expect_served(busy);
  expect_gpu_serves();
}

// heddled has MPS take its worker off, which fails what that computes (810).
TEST_F(MpsFaultTest, AProgramThatEndsInMidKernelIsNoNeighboursBusiness) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient neighbour = running(Bytes{4 * kMiB});
  compute(neighbour, kRepeatableLong);
  const pid_t neighbours = worker_of(neighbour);
  TestClient ends = running(Bytes{4 * kMiB});
  const pid_t worker = worker_of(ends);
  compute(ends);
  ends.socket().close();
  EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
  house_->wait_for("ps", [&](const Json&) { return !is_there(worker); });
  EXPECT_EQ(worker_of(neighbour), neighbours);
  EXPECT_EQ(mps_.servers().size(), 1u);
  neighbour.host_calls_return();
  expect_served(neighbour);
}

TEST_F(MpsFaultTest, WhatAWorkerRefusesIsNoNeighboursBusiness) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient origin = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  fault(origin, kRefused);
  expect_failed(origin, 700, "asked for");
  expect_served(neighbour);
  EXPECT_EQ(mps_.servers().size(), 1u);
}

TEST_F(MpsFaultTest, OneFaultAfterTheOtherIsServed) {
  ASSERT_NO_FATAL_FAILURE(start_gpu(kNothingIsTried));
  for (int i = 0; i < 3; ++i) {
    TestClient origin = running(Bytes{4 * kMiB}), second = running(Bytes{4 * kMiB});
    fault(origin);
    fault(second);
    EXPECT_TRUE(origin.wait_binding(Binding::kFailed));
    EXPECT_TRUE(second.wait_binding(Binding::kFailed));
  }
  expect_gpu_serves();
}

TEST_F(MpsFaultTest, AServerThatDoesNotEndIsKilled) {
  mps_.make_stubborn();
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  const pid_t server = mps_.servers().front(), control = this->control();
  TestClient origin = running(Bytes{4 * kMiB});
  fault(origin);
  expect_failed(origin, 700, "asked for");
  expect_gpu_serves();
  EXPECT_FALSE(is_there(server));
  EXPECT_EQ(this->control(), control);
}

TEST_F(MpsFaultTest, AControlDaemonThatDoesNotAnswerIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  const pid_t control = this->control();
  TestClient origin = running(Bytes{4 * kMiB});
  mps_.make_mute();
  fault(origin);
  expect_failed(origin, 700, "asked for");
  expect_gpu_serves();
  EXPECT_NE(this->control(), control);
  EXPECT_FALSE(is_there(control));
}

TEST_F(MpsFaultTest, AControlDaemonThatDiesIsReplacedAndItsClientsGoOn) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  const pid_t control = this->control(), server = mps_.servers().front();
  TestClient client = running(Bytes{4 * kMiB});
  ASSERT_TRUE(is_there(control));
  ::kill(control, SIGKILL);
  house_->wait_for("devices", [&](const Json&) { return !is_there(control); });
  expect_served(client);
  expect_gpu_serves();
  EXPECT_NE(this->control(), control);
  house_->wait_for("status", [&](const Json&) { return !is_there(server); });  // which it left behind
}

TEST_F(MpsFaultTest, AWorkerThatDiesInMidKernelIsEverybodysFault) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient victim = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(victim);
  compute(neighbour);
  house_->kill(worker_of(0));
  expect_failed(victim, 719, "signal 9");
  expect_served(idle);
  expect_failed(neighbour, 700, "another program's worker ended in the middle of its work");
  expect_gpu_serves();
}

TEST_F(MpsFaultTest, AWorkerThatDiesIdleIsReplacedAndNobodyElsesBusiness) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient victim = running(Bytes{4 * kMiB}), neighbour = running(Bytes{4 * kMiB});
  const pid_t neighbours = worker_of(1), server = mps_.servers().front();
  house_->kill(worker_of(0));
  expect_served(victim);
  expect_served(neighbour);
  EXPECT_EQ(worker_of(1), neighbours);
  EXPECT_TRUE(is_there(server));
}

// The program ends before heddled has heard of its fault.
TEST_F(MpsFaultTest, TheFaultOfAnEndedProgramCounts) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient neighbour = running(Bytes{4 * kMiB});
  compute(neighbour);
  const pid_t heddled = house_->heddled();
  ASSERT_GT(heddled, 1);
  int to_child[2], to_test[2];
  ASSERT_EQ(::pipe(to_child), 0);
  ASSERT_EQ(::pipe(to_test), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    TestClient client = running(Bytes{4 * kMiB});
    client.fill(client.at(0), 1);
    char byte = 0;
    const bool served = client.wait_completed(1);  // its worker needs heddled no more
    const bool told = ::write(to_test[1], &byte, 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
    fault(client);
    while (client.header().issued.load() != client.writer().last_sequence()) ::usleep(1000);
    ::_exit(served && told ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(to_test[0], &byte, 1), 1);
  ::kill(heddled, SIGSTOP);
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  int status = -1;
  ::waitpid(program, &status, 0);
  ::kill(heddled, SIGCONT);
  EXPECT_EQ(status, 0);
  expect_failed(neighbour, 700, "another program's kernel");
  for (const int fd : {to_child[0], to_child[1], to_test[0], to_test[1]}) ::close(fd);
}

template <class Message>
protocol::Packet packet_of(const Message& message) {
  protocol::Packet packet;
  packet.type = Message::kType;
  packet.body.resize(sizeof message);
  std::memcpy(packet.body.data(), &message, sizeof message);
  return packet;
}

TEST(CountsThoughKilled, IsWhatIsEverybodysFault) {
  EXPECT_TRUE(counts_though_killed(packet_of(protocol::WorkerFault{.cuda_error = 700, .device_lost = 1})));
  EXPECT_FALSE(counts_though_killed(packet_of(protocol::WorkerFault{.cuda_error = 700})));
  EXPECT_FALSE(counts_though_killed(packet_of(protocol::TaskEnded{})));
}

TEST_F(MpsFaultTest, AnMpsThatTakesNoClientIsStartedAnew) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient neighbour = running(Bytes{4 * kMiB});
  compute(neighbour);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] == 1; });
  house_->fail_workers(true, protocol::kDeviceRefuses);
  TestClient next = running(Bytes{4 * kMiB}), refused = begun(Bytes{4 * kMiB});  // the first has the warm worker
  expect_failed(neighbour, 810, "has taken no client 12 times in a row");
  EXPECT_TRUE(refused.wait_binding(Binding::kBound)) << refused.error_text();
  EXPECT_GT(mps_.servers().size(), 1u);
}

// Which is no reason to end anybody's worker.
TEST_F(MpsFaultTest, WorkersThatCannotStartForOtherReasonsHarmNobody) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient neighbour = running(Bytes{4 * kMiB});
  house_->fail_workers(true);
  TestClient waiting = begun(Bytes{4 * kMiB});
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["state"] != "ok"; });
  house_->fail_workers(false);
  expect_served(neighbour);
  EXPECT_TRUE(waiting.wait_binding(Binding::kBound)) << waiting.error_text();
  EXPECT_EQ(mps_.servers().size(), 1u);
}

// heddled dies at some moment of what it does about a fault.
struct HeddledDiesUnderMps : MpsFaultTest, ::testing::WithParamInterface<useconds_t> {};

TEST_P(HeddledDiesUnderMps, AtThatMoment) {
  ASSERT_NO_FATAL_FAILURE(start_gpu());
  TestClient busy = running(Bytes{4 * kMiB}), origin = running(Bytes{4 * kMiB}), idle = running(Bytes{4 * kMiB});
  compute(busy, kRepeatable);
  const pid_t old = house_->heddled();
  fault(origin, kRepeatable);
  ::usleep(GetParam());
  house_->kill(old);
  house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  EXPECT_TRUE(origin.wait_fault(700)) << origin.error_text();
  expect_served(busy);
  expect_served(idle);
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["state"] == "ok"; });
}

INSTANTIATE_TEST_SUITE_P(Microseconds, HeddledDiesUnderMps,
                         ::testing::Values(0, 5000, 10000, 30000, 60000, 90000, 150000));

}  // namespace
}  // namespace heddle::daemon::testing
