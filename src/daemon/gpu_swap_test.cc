// Suspended jobs' memory leaves a GPU, over the driver that tests bring: keepers make swap space and copy.

#include <unistd.h>

#include <csignal>
#include <fstream>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/suspend_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::RecordType;
using ::testing::HasSubstr;

class GpuSwapTest : public SuspendJobTest {
 protected:
  Result<Json> tell_to_swap() { return house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}); }
  Json swap_space() { return (*house_->ask({{"command", "devices"}}))["swap"]; }
  uint64_t swap_used() { return swap_space()["used"]; }
  uint64_t swap_kept() { return swap_space()["kept"]; }
  TestClient with_byte(Bytes bytes = Bytes{40 * kMiB}) {
    TestClient client = running_in_job(bytes);
    client.record(RecordType::kNeed, 1);
    client.fill(client.at(10), 7);
    EXPECT_TRUE(client.wait_completed(2)) << client.error_text();
    return client;
  }
  static void expect_byte(TestClient& client) {
    client.header().fault.store(0);  // from the last time
    client.record(RecordType::kNeed, 1);
    client.record(RecordType::kTextureGone, client.at(10));
    EXPECT_TRUE(client.wait_fault(7)) << client.error_text();
  }
  void swapped() {
    ASSERT_TRUE(tell_to_swap());
    wait_for_state("swapped");
  }
  void swapped_and_back(TestClient& client) {
    swapped();
    resumed();
    expect_byte(client);
  }
  void machine_has_no_more() const { std::ofstream(gpus_.host_room()) << 0; }

  FakeGpus gpus_;
};

TEST_F(GpuSwapTest, MemoryLeavesAndComesBackAndItsPlaceIsOthersMeanwhile) {
  start(kSmallGpu);
  TestClient client = with_byte();
  ASSERT_TRUE(tell_to_swap());
  wait_for_state("swapped");
  EXPECT_EQ(swap_used(), 40 * kMiB);
  TestClient other = running(Bytes{40 * kMiB});
  other.record(RecordType::kNeed, 1);
  ASSERT_TRUE(other.wait_completed(1)) << other.error_text();
  finish(other);
  resumed();
  expect_byte(client);
  finish(client);
  expect_used(Bytes{});
  EXPECT_EQ(swap_used(), 0u);
}

TEST_F(GpuSwapTest, WhereTheMachineHasNoMemoryForItItStays) {
  std::ofstream(gpus_.host_room()) << 0;
  start(kSmallGpu);
  TestClient client = with_byte();
  ASSERT_TRUE(tell_to_swap());
  Json job;
  house_->wait_for("ps", [&](const Json&) {
    job = *tell("job");
    return job.contains("not_swapped");
  });
  EXPECT_THAT(job["not_swapped"].get<std::string>(), HasSubstr("the GPU's keeper has no memory"));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspended");
  EXPECT_EQ(swap_used(), 0u);
  expect_used(Bytes{40 * kMiB});
  resumed();
  expect_byte(client);
}

TEST_F(GpuSwapTest, WhatWasPinnedOnceIsUsedAgain) {
  start(kSmallGpu);
  TestClient client = with_byte();
  swapped_and_back(client);
  EXPECT_EQ(swap_used(), 0u);
  EXPECT_EQ(swap_kept(), 40 * kMiB);
  machine_has_no_more();
  for (int round = 0; round < 3; ++round) {
    swapped();
    EXPECT_EQ(swap_used(), 40 * kMiB);
    EXPECT_EQ(swap_kept(), 0u);
    resumed();
    expect_byte(client);
  }
  EXPECT_EQ(swap_kept(), 40 * kMiB);
}

TEST_F(GpuSwapTest, WhatWasPinnedForAProgramThatHasGoneIsTheNextOnes) {
  start(kSmallGpu);
  {
    TestClient client = with_byte();
    swapped();
  }
  ASSERT_TRUE(house_->client());  // the same process as another program: ends the session before it
  house_->wait_for("devices", [](const Json& answer) { return answer["swap"]["kept"] == 40 * kMiB; });
  EXPECT_EQ(swap_used(), 0u);
  machine_has_no_more();
  TestClient next = with_byte();
  swapped_and_back(next);
}

TEST_F(GpuSwapTest, NobodySeesWhatAnotherProgramHadThere) {
  start(kSmallGpu);
  TestClient first = with_byte();
  for (uint64_t piece = 0; piece < 20; ++piece) first.fill(first.at(piece) + piece, 0xab);
  swapped_and_back(first);
  finish(first);
  expect_used(Bytes{});
  machine_has_no_more();
  TestClient next = with_byte();
  swapped_and_back(next);
  for (uint64_t piece = 0; piece < 20; ++piece) {
    if (piece == 10) continue;  // its own byte
    next.record(RecordType::kTextureGone, next.at(piece) + piece);
    ASSERT_TRUE(next.wait_fault(0)) << piece << ": " << next.header().fault.load();
    next.record(RecordType::kTextureGone, next.at(10));
    ASSERT_TRUE(next.wait_fault(7));
  }
}

TEST_F(GpuSwapTest, AKeeperThatDiesLeavesWhatIsKept) {
  start(kSmallGpu);
  TestClient client = with_byte();
  swapped_and_back(client);
  machine_has_no_more();
  for (int round = 0; round < 2; ++round) {
    const auto keepers = children_named("heddle-keeper");
    ASSERT_EQ(keepers.size(), 1u);
    ASSERT_EQ(::kill(keepers.front(), SIGKILL), 0);
    if (round == 0) swapped_and_back(client);
  }
  swapped();
  resumed();
  expect_byte(client);
  EXPECT_EQ(swap_kept(), 40 * kMiB);
}

TEST_F(GpuSwapTest, WithHeddledGoesWhatIsKept) {
  start(kSmallGpu);
  TestClient client = with_byte();
  swapped_and_back(client);
  restart();
  ASSERT_TRUE(client.resume(house_->socket()));
  EXPECT_EQ(swap_kept(), 0u);
  swapped();
  restart();
  ASSERT_TRUE(client.resume(house_->socket()));
  EXPECT_EQ(swap_used(), 40 * kMiB);
  resumed();
  expect_byte(client);
  EXPECT_EQ(swap_kept(), 0u) << "a worker may have had it mapped before the restart, as far as heddled knows";
  swapped_and_back(client);
  EXPECT_EQ(swap_kept(), 40 * kMiB);
}

TEST_F(GpuSwapTest, WhatIsKeptGivesWayToWhatIsWantedOfAnotherSize) {
  start(kSmallGpu, "[swap]\nidle = \"0s\"\nhost = \"50M\"\npinned = \"50M\"\n");
  TestClient client = with_byte();
  swapped_and_back(client);
  finish(client);
  EXPECT_EQ(swap_kept(), 40 * kMiB);
  TestClient small = with_byte(Bytes{30 * kMiB});
  swapped();
  EXPECT_EQ(swap_used(), 30 * kMiB);
  EXPECT_EQ(swap_kept(), 0u);
  resumed();
  expect_byte(small);
  EXPECT_EQ(swap_kept(), 30 * kMiB);
}

TEST_F(GpuSwapTest, NothingIsKeptWhereTheConfigurationSaysSo) {
  start(kSmallGpu, "[swap]\nidle = \"0s\"\npinned = 0\n");
  TestClient client = with_byte();
  swapped_and_back(client);
  EXPECT_EQ(swap_kept(), 0u);
  swapped_and_back(client);
}

// The copies of whoever comes back in the middle of his way are no trap for the next one.
TEST_F(GpuSwapTest, WhoTurnsBackOnTheWayIsRightTheNextTime) {
  start(kSmallGpu);
  TestClient client = with_byte();
  for (useconds_t round = 0; round < 12; ++round) {
    ASSERT_TRUE(tell_to_swap());
    ::usleep(round * 1000);
    resumed();
    expect_byte(client);
  }
  swapped_and_back(client);
  finish(client);
  expect_used(Bytes{});
  EXPECT_EQ(swap_used(), 0u);
}

}  // namespace
}  // namespace heddle::daemon::testing
