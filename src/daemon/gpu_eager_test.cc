// Tasks that run with a part of their memory on the host, over the driver that tests bring: keepers make that memory so
// that their GPU reaches it, and copy it to the GPU's.

#include <algorithm>
#include <csignal>
#include <fstream>

#include "daemon/testing/eager_fixture.h"
#include "daemon/testing/fake_gpus.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

class GpuEagerTest : public EagerFixture {
 protected:
  void wait_for_on_host(const TestClient& client, Bytes bytes) {
    house_->wait_for("ps", [&](const Json&) { return on_host(client) == bytes; });
  }
  void kill_keeper() {
    const auto keepers = children_named("heddle-keeper");
    ASSERT_EQ(keepers.size(), 1u);
    ASSERT_EQ(::kill(keepers.front(), SIGKILL), 0);
  }
  FakeGpus gpus_;
};

TEST_F(GpuEagerTest, ATaskThatFitsNowhereRunsWithAPartOnTheHost) {
  start(kSmallGpu, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  EXPECT_EQ(on_host(client), kPiece);
  EXPECT_EQ(swap_used(), kPiece);
  expect_bytes(client);
  expect_promoted_behind(other, client);
}

TEST_F(GpuEagerTest, WhereTheMachineHasNoMemoryForItTheProgramIsTold) {
  std::ofstream(gpus_.host_room()) << 0;
  start(kSmallGpu, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = begun_in_pieces();
  EXPECT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_THAT(client.error_text(), HasSubstr("memory"));
  expect_used(Bytes{40 * kMiB});
  EXPECT_EQ(swap_used(), Bytes{});
  other.record(RecordType::kNeed, 1);
  EXPECT_TRUE(other.wait_completed(1));
}

// Neither what swap space keeps of another program, nor what the driver finds in the machine's memory.
TEST_F(GpuEagerTest, WhatLiesOnTheHostBeginsAsZero) {
  start(kSmallGpu, kEager);
  TestClient before = running_in_job(kPiece);
  before.record(RecordType::kNeed, 1);
  for (uint64_t piece = 0; piece < 10; ++piece) before.fill(before.at(piece) + piece, 0xab);
  ASSERT_TRUE(before.wait_completed(11));
  ASSERT_TRUE(house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}));
  wait_for_state("swapped");
  resumed();
  before.record(RecordType::kNeed, 1);
  ASSERT_TRUE(before.wait_completed(12));
  finish(before);
  EXPECT_EQ((*house_->ask({{"command", "devices"}}))["swap"]["kept"], kPiece.value);

  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  EXPECT_EQ(on_host(client), kPiece);
  for (uint64_t piece = 0; piece < 10; ++piece) {
    client.record(RecordType::kTextureGone, start_of(client, 1) + piece * 2 * kMiB + std::max<uint64_t>(piece, 1));
    ASSERT_TRUE(client.wait_fault(0)) << piece << ": " << client.header().fault.load();
    client.record(RecordType::kTextureGone, start_of(client, 1));
    ASSERT_TRUE(client.wait_fault(2));
  }
}

TEST_F(GpuEagerTest, AKeeperThatDiesTakesNothingAlong) {
  start(kSmallGpu, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  kill_keeper();
  expect_bytes(client);
  finish(other);
  promoted(client);
  expect_bytes(client);
}

// In the middle of the copy, or before it.
TEST_F(GpuEagerTest, AKeeperThatDiesWhileItCopiesLosesNothing) {
  start(kSmallGpu, kEager);
  for (useconds_t round = 0; round < 4; ++round) {
    TestClient other = running(Bytes{40 * kMiB});
    TestClient client = eager();
    finish(other);
    ::usleep(round * 2000);
    kill_keeper();
    expect_bytes(client);
    expect_used(Bytes{40 * kMiB});
    wait_for_on_host(client, Bytes{});
    expect_bytes(client);
    finish_pieces(client);
    expect_nothing_left();
  }
}

TEST_F(GpuEagerTest, ItOutlivesHeddled) {
  start(kSmallGpu, kEager);
  TestClient other = running(Bytes{40 * kMiB});
  TestClient client = eager();
  restart();
  ASSERT_TRUE(client.resume(house_->socket()));
  ASSERT_TRUE(other.resume(house_->socket()));
  EXPECT_EQ(on_host(client), kPiece);
  expect_bytes(client);
  finish(other);
  promoted(client);
  expect_bytes(client);
}

}  // namespace
}  // namespace heddle::daemon::testing
