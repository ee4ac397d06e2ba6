// Tasks that run with a part of their memory on the host, with real processes and workers without devices.

#include <csignal>

#include "daemon/testing/eager_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

class EagerTest : public EagerFixture {};

TEST_F(EagerTest, ATaskThatFitsNowhereRunsWithAPartOnTheHost) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  EXPECT_EQ(on_host(client), kPiece);
  EXPECT_THAT(task_of(client)["reason"].get<std::string>(), HasSubstr("launched eagerly: 20 MiB on device 0"));
  expect_used(Bytes{60 * kMiB});
  EXPECT_EQ(swap_used(), kPiece);
  EXPECT_EQ((*house_->ask({{"command", "devices"}}))["devices"][0]["on_host"], kPiece.value);
  expect_bytes(client);
  finish_pieces(client);
  expect_used(Bytes{40 * kMiB});
  EXPECT_EQ(swap_used(), Bytes{});
  finish(other);
  expect_nothing_left();
}

TEST_F(EagerTest, WhatIsOnTheHostIsPromotedAsMemoryReturns) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  expect_promoted_behind(other, client);
}

// The place that returns is the eager task's, not that of who waits and would fit.
TEST_F(EagerTest, ItIsPromotedBeforeOthersThatWait) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  TestClient waits = begun(Bytes{30 * kMiB});
  house_->wait_for("ps", [&](const Json&) { return task_of(waits).value("state", "") == "waiting"; });
  finish(other);
  promoted(client);
  EXPECT_EQ(task_of(waits).value("state", ""), "waiting");
  expect_bytes(client);
  finish_pieces(client);
  EXPECT_TRUE(waits.wait_binding(Binding::kBound));
}

TEST_F(EagerTest, AJobThatIsSuspendedWhileItComesToACutLeavesWithAllOfItsMemory) {
  start(kOneDevice, kEager);
  for (useconds_t round = 0; round < 6; ++round) {
    TestClient other = running(Bytes{40 * kMiB});
    TestClient client = eager();
    finish(other);
    ::usleep(round * 400);
    ASSERT_TRUE(house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}));
    wait_for_state("swapped");
    expect_used(Bytes{});
    EXPECT_EQ(swap_used(), Bytes{40 * kMiB});
    resumed();
    expect_bytes(client);
    finish_pieces(client);
    expect_nothing_left();
  }
}

TEST_F(EagerTest, ItIsSwitchedOffByDefault) {
  start(kOneDevice);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = begun_in_pieces();
  house_->wait_for("ps", [&](const Json&) { return task_of(client).value("state", "") == "waiting"; });
  finish(other);
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
  EXPECT_EQ(on_host(client), Bytes{});
}

TEST_F(EagerTest, WithoutSwapSpaceItWaits) {
  start(kOneDevice, std::string(kEager) + "[swap]\nhost = \"16M\"\nidle = \"0s\"\n");
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = begun_in_pieces();
  house_->wait_for("ps", [&](const Json&) { return task_of(client).value("state", "") == "waiting"; });
  finish(other);
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
}

// Half of the memory is free, and no segments make half.
TEST_F(EagerTest, WhatCannotBeCutSoWaits) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = begun_in_pieces(1, Bytes{40 * kMiB});
  house_->wait_for("ps", [&](const Json&) { return task_of(client).value("state", "") == "waiting"; });
  finish(other);
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
}

TEST_F(EagerTest, ASmallPieceAloneIsNotPromoted) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{30 * kMiB}), large = running(Bytes{10 * kMiB});
  TestClient client = eager(6, Bytes{8 * kMiB});  // three on the host
  EXPECT_EQ(on_host(client), Bytes{24 * kMiB});
  finish(large);
  expect_bytes(client, 6, Bytes{8 * kMiB});
  EXPECT_EQ(task_of(client).value("promotions", 0), 0);
  finish(other);
  promoted(client);
  expect_bytes(client, 6, Bytes{8 * kMiB});
}

TEST_F(EagerTest, MemoryThatItFreesOnTheHostReturnsToSwapSpace) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  client.record(RecordType::kFree, 2);
  house_->wait_for("devices", [&](const Json& answer) { return answer["swap"]["used"] == 0; });
  expect_used(Bytes{60 * kMiB});
  EXPECT_EQ(on_host(client), Bytes{});
  TestClient second = eager(2, Bytes{4 * kMiB});  // all of what is left, and the next eager task
  EXPECT_EQ(on_host(second), Bytes{4 * kMiB});
}

TEST_F(EagerTest, MoreMemoryIsTheDevices) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  ASSERT_TRUE(client.declare(3, client.at(22), Bytes{4 * kMiB}));
  client.record(RecordType::kNeed, 3);
  client.fill(client.at(22), 3);
  EXPECT_TRUE(client.wait_completed(6)) << client.error_text();
  expect_used(Bytes{64 * kMiB});
  EXPECT_EQ(on_host(client), kPiece);
}

TEST_F(EagerTest, ASuspendedJobLeavesAndComesBackWithAllOfItOnTheDevice) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  ASSERT_TRUE(house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}));
  wait_for_state("swapped");
  expect_used(Bytes{40 * kMiB});
  EXPECT_EQ(swap_used(), Bytes{40 * kMiB});
  EXPECT_EQ(on_host(client), Bytes{});
  finish(other);
  resumed();
  expect_bytes(client);
  expect_used(Bytes{40 * kMiB});
  EXPECT_EQ(swap_used(), Bytes{});
}

TEST_F(EagerTest, ASuspendedJobIsPromotedWhenItIsResumed) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  suspended();
  finish(other);
  EXPECT_EQ(on_host(client), kPiece);
  EXPECT_EQ(task_of(client)["state"], "suspended");
  resumed();
  promoted(client);
  expect_bytes(client);
}

TEST_F(EagerTest, ATaskThatCannotChangeItsWorkerKeepsItsMemoryOnTheHost) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  client.record(RecordType::kLimit, kWhenSuspended);
  ASSERT_TRUE(client.wait_completed(5));
  finish(other);
  expect_used(Bytes{20 * kMiB});
  expect_bytes(client);
  EXPECT_EQ(on_host(client), kPiece);
  EXPECT_EQ(task_of(client)["state"], "running");
}

TEST_F(EagerTest, AWorkerThatDiesIsReplaced) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  house_->kill(worker_of(client));
  expect_bytes(client);
  EXPECT_EQ(on_host(client), kPiece);
  finish_pieces(client);
  finish(other);
  expect_nothing_left();
}

TEST_F(EagerTest, AWorkerThatDiesAtItsWorkReturnsAllMemory) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  compute(client);
  house_->kill(worker_of(client));
  EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  expect_used(Bytes{40 * kMiB});
  EXPECT_EQ(swap_used(), Bytes{});
}

TEST_F(EagerTest, ItOutlivesHeddledAndItsVault) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  restart();
  expect_used(Bytes{60 * kMiB});
  EXPECT_EQ(swap_used(), kPiece);
  restart("heddle-vault");
  ASSERT_TRUE(client.resume(house_->socket()));
  ASSERT_TRUE(other.resume(house_->socket()));
  EXPECT_EQ(on_host(client), kPiece);
  expect_bytes(client);
  restart();
  ASSERT_TRUE(other.resume(house_->socket()));
  ASSERT_TRUE(client.resume(house_->socket()));
  finish(other);
  promoted(client);
  expect_bytes(client);
  finish_pieces(client);
  expect_nothing_left();
}

// Whatever it is at just then. A vault starts heddled five times a minute.
TEST_F(EagerTest, HeddledDiesOnTheWay) {
  start(kOneDevice, kEager);
  for (useconds_t round = 0; round < 5; ++round) {
    TestClient other = running(Bytes{40 * kMiB});
    TestClient client = eager();
    other.record(RecordType::kFree, 1);
    other.record(RecordType::kTaskEnd, 1);
    ::usleep(round * 3000);
    restart();
    ASSERT_TRUE(client.resume(house_->socket()));
    expect_used(Bytes{40 * kMiB});
    house_->wait_for("devices", [&](const Json& answer) { return answer["swap"]["used"] == 0; });
    expect_bytes(client);
    finish_pieces(client);
    expect_nothing_left();
  }
}

TEST_F(EagerTest, AProgramThatEndsLeavesNothing) {
  start(kOneDevice, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  for (useconds_t round = 0; round < 4; ++round) {
    TestClient client = eager();
    ASSERT_TRUE(tell("cancel"));
    ASSERT_TRUE(client.wait_binding(Binding::kFailed));
    expect_used(Bytes{40 * kMiB});
    EXPECT_EQ(swap_used(), Bytes{});
  }
}

TEST_F(EagerTest, AProgramThatEndsWhileItIsPromotedLeavesNothing) {
  start(kOneDevice, kEager);
  for (useconds_t round = 0; round < 5; ++round) {
    TestClient other = running(Bytes{40 * kMiB});
    TestClient client = eager();
    finish(other);
    ::usleep(round * 2000);
    ASSERT_TRUE(tell("cancel"));
    ASSERT_TRUE(client.wait_binding(Binding::kFailed));
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace heddle::daemon::testing
