// Memory that programs have freed and keep until somebody waits.

#include <csignal>
#include <thread>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::IdleTable;

class IdleTest : public HouseholdTest {
 protected:
  template <class Holds>
  static bool eventually(Holds&& holds) {
    for (int i = 0; i < 20000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }
  // The program has used the segment, by its ring's first record, and freed it.
  static void offer(TestClient& client, uint64_t segment = 1) {
    client.record(protocol::RecordType::kNeed, segment);
    EXPECT_TRUE(client.wait_completed(1));
    client.header().idle.segments[segment] = segment;
  }
  // The program holds nothing any more.
  static void rest(TestClient& client) {
    offer(client);
    client.header().idle.task = IdleTable::offered_task(1);
  }
  // One whose policy answers cudaMalloc runs with 40 of 64 MiB, and has freed them.
  TestClient resting_under_cg() {
    TestClient client = opened();
    EXPECT_TRUE(client.declare(1, client.at(0), Bytes{40 * kMiB}, true));
    EXPECT_EQ(client.answer()->cuda_error, 0u);
    EXPECT_TRUE(client.begin(1));
    EXPECT_TRUE(client.wait_binding(Binding::kBound));
    rest(client);
    return client;
  }
  uint64_t used() { return (*house_->ask({{"command", "devices"}}))["devices"][0]["used"]; }
  pid_t worker_of(size_t session) {
    return (*house_->ask({{"command", "ps"}}))["sessions"][session]["tasks"][0]["worker_pid"];
  }
};

TEST_F(IdleTest, ProgramsMayKeepWhatTheyFreeUnlessSomebodyWaits) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  EXPECT_TRUE(eventually([&] { return first.header().idle_allowed == 1; }));
  TestClient second = begun(Bytes{40 * kMiB});
  EXPECT_TRUE(eventually([&] { return first.header().idle_allowed == 0; }));
  finish(first);
  ASSERT_TRUE(second.wait_binding(Binding::kBound));
  EXPECT_TRUE(eventually([&] { return second.header().idle_allowed == 1; }));
}

TEST_F(IdleTest, WhatIsIdleIsChargedAndNobodyIsAskedForItWhileThereIsRoom) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  rest(first);
  TestClient second = running(Bytes{8 * kMiB});
  EXPECT_EQ(used(), 48 * kMiB);
  EXPECT_EQ(first.header().reclaims.load(), 0u);
}

TEST_F(IdleTest, ATaskThatWaitsGetsWhatAnotherHasIdle) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  rest(first);
  TestClient second = running(Bytes{40 * kMiB});
  EXPECT_TRUE(first.wait_binding(Binding::kUnbound));
  EXPECT_EQ(used(), 40 * kMiB);
}

TEST_F(IdleTest, OnlyTheIdlePartOfATaskIsTaken) {
  start(kOneDevice);
  TestClient first = opened();
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{8 * kMiB}));
  ASSERT_TRUE(first.declare(2, first.at(32), Bytes{40 * kMiB}));
  ASSERT_TRUE(first.begin(1));
  ASSERT_TRUE(first.wait_binding(Binding::kBound));
  offer(first, 2);
  TestClient second = running(Bytes{40 * kMiB});
  EXPECT_EQ(used(), 48 * kMiB);
  first.record(protocol::RecordType::kMarker);
  EXPECT_TRUE(first.wait_completed(2));
}

TEST_F(IdleTest, ATaskThatNeedsMoreGetsWhatAnotherHasIdle) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB}), second = running(Bytes{8 * kMiB});
  rest(first);
  ASSERT_TRUE(second.declare(2, second.at(32), Bytes{40 * kMiB}));
  second.record(protocol::RecordType::kNeed, 2);
  EXPECT_TRUE(second.wait_completed(1));
}

// Nobody holds anything that he uses.
TEST_F(IdleTest, ItsOwnIdleMemoryIsNoReasonToRefuseIt) {
  start(kOneDevice);
  TestClient first = opened(), second = opened();
  for (TestClient* client : {&first, &second}) {
    ASSERT_TRUE(client->declare(1, client->at(0), Bytes{2 * kMiB}));
    ASSERT_TRUE(client->declare(2, client->at(8), Bytes{28 * kMiB}));
    ASSERT_TRUE(client->begin(1));
    ASSERT_TRUE(client->wait_binding(Binding::kBound));
    offer(*client, 2);
  }
  ASSERT_TRUE(first.declare(3, first.at(32), Bytes{32 * kMiB}));
  first.record(protocol::RecordType::kNeed, 3);
  EXPECT_TRUE(first.wait_completed(2)) << first.error_text();
}

TEST_F(IdleTest, APolicyThatRefusesWhatDoesNotFitFirstHasWhatIsIdleGivenBack) {
  start(kOneDevice, "policy = \"cg:3\"\n");
  TestClient first = resting_under_cg();
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{40 * kMiB}, true));
  const auto answer = second.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cuda_error, 0u) << answer->text;
}

TEST_F(IdleTest, AJobsBudgetIsNotUsedUpByWhatItsOtherProgramsHaveIdle) {
  start(kOneDevice);
  auto opener = protocol::connect_to(house_->socket());
  const auto job = Household::ask(*opener, {{"command", "job_open"}, {"name", "a"}, {"memory", 16 * kMiB}});
  ASSERT_TRUE(job);
  TestClient first = opened((*job)["job"], (*job)["secret"]), second = opened((*job)["job"], (*job)["secret"]);
  ASSERT_TRUE(first.declare(1, first.at(0), Bytes{12 * kMiB}));
  ASSERT_TRUE(first.begin(1));
  ASSERT_TRUE(first.wait_binding(Binding::kBound));
  rest(first);
  ASSERT_TRUE(second.ask(protocol::MemoryInfo{}));
  const auto info = second.socket().expect<protocol::MemoryAnswer>(TestClient::kPatience);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->others_bytes, 0u);
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{12 * kMiB}));
  ASSERT_TRUE(second.begin(1));
  EXPECT_TRUE(second.wait_binding(Binding::kBound)) << second.error_text();
}

// The worker may be at a long kernel, or its program may keep it from answering.
TEST_F(IdleTest, AWorkerThatDoesNotAnswerIsNotWaitedForForEver) {
  start(kOneDevice, "policy = \"cg:4\"\n");
  TestClient first = resting_under_cg();
  const pid_t worker = worker_of(0);
  ASSERT_GT(worker, 1);
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{40 * kMiB}, true));
  const auto refused = second.answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->cuda_error, 2u);
  ASSERT_EQ(::kill(worker, SIGCONT), 0);
  EXPECT_TRUE(first.wait_binding(Binding::kUnbound));
  ASSERT_TRUE(second.declare(2, second.at(0), Bytes{40 * kMiB}, true));
  const auto answer = second.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cuda_error, 0u) << answer->text;
}

TEST_F(IdleTest, AWorkerThatDiesWhileItIsAskedIsNotWaitedFor) {
  start(kOneDevice, "policy = \"cg:3\"\n");
  TestClient first = resting_under_cg();
  const pid_t worker = worker_of(0);
  ASSERT_GT(worker, 1);
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  TestClient second = opened();
  ASSERT_TRUE(second.declare(1, second.at(0), Bytes{40 * kMiB}, true));
  ASSERT_TRUE(eventually([&] { return first.header().reclaims == 1; }));
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  ASSERT_TRUE(second.answer());
}

TEST_F(IdleTest, WhatATenantWritesIntoItsTableHarmsNobodyElse) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  for (auto& slot : first.header().idle.segments) slot = 1;
  first.header().idle.segments[7] = ~0ull;
  first.header().idle.task = ~0ull;
  TestClient second = running(Bytes{40 * kMiB});
  EXPECT_EQ(used(), 40 * kMiB);
}

TEST_F(IdleTest, ARestartedHeddledHasWhatIsIdleGivenBackToo) {
  start(kOneDevice);
  TestClient first = running(Bytes{40 * kMiB});
  rest(first);
  house_->kill(house_->heddled());
  ASSERT_TRUE(first.resume(house_->socket()));
  TestClient second = begun(Bytes{40 * kMiB});
  EXPECT_TRUE(second.wait_binding(Binding::kBound));
}

}  // namespace
}  // namespace heddle::daemon::testing
