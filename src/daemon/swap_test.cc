// Suspended jobs whose memory leaves its device, with real processes and workers without devices.

#include <csignal>

#include "daemon/testing/swap_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

TEST_F(SwapTest, AJobsMemoryLeavesTheDeviceAndComesBack) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  expect_used(Bytes{});
  EXPECT_EQ(swap_used(), kMuch);
  EXPECT_EQ(session_of(client)["tasks"][0]["swapped"], kMuch.value);
  EXPECT_THAT(session_of(client)["tasks"][0]["reason"].get<std::string>(), HasSubstr("lies in swap space"));
  TestClient other = running(kMuch);
  other.fill(other.at(0), 1);
  EXPECT_TRUE(other.wait_completed(1));
  finish(other);
  resumed();
  expect_bytes(client);
  expect_used(kMuch);
  EXPECT_EQ(swap_used(), Bytes{});
  finish(client);
  expect_nothing_left();
}

TEST_F(SwapTest, AgainAndAgain) {
  start(kOneDevice);
  TestClient client = with_bytes();
  for (int round = 0; round < 3; ++round) {
    swapped();
    resumed();
    expect_bytes(client);
  }
}

TEST_F(SwapTest, AResumedJobWaitsInTheLine) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  TestClient other = running(kMuch);
  resumed();
  wait_for_state("waiting");
  finish(other);
  expect_bytes(client);
}

TEST_F(SwapTest, OneThatWaitsIsSuspendedAgain) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  TestClient other = running(kMuch);
  resumed();
  wait_for_state("waiting");
  ASSERT_TRUE(tell("suspend"));
  wait_for_state("swapped");
  finish(other);
  expect_used(Bytes{});
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "swapped");
  resumed();
  expect_bytes(client);
}

TEST_F(SwapTest, ItGoesOnOnAnotherDeviceOfTheModel) {
  start(kTwoDevices);
  TestClient client = with_bytes();
  const Json device = session_of(client)["tasks"][0]["device"];
  swapped();
  TestClient first = running(kMuch), second = running(kMuch);
  finish(session_of(first)["tasks"][0]["device"] == device ? second : first);
  resumed();
  expect_bytes(client);
  EXPECT_NE(session_of(client)["tasks"][0]["device"], device);
}

TEST_F(SwapTest, OneThatIsSuspendedAlreadyLeavesWhenItIsAsked) {
  start(kOneDevice);
  TestClient client = with_bytes();
  suspended();
  expect_used(kMuch);
  swapped();
  resumed();
  expect_bytes(client);
}

// Nobody asks for it: whoever waits gets the device of those who are suspended.
TEST_F(SwapTest, MemoryStaysUntilSomebodyWaitsForIt) {
  start(kOneDevice);
  TestClient client = with_bytes();
  suspended();
  TestClient small = running(Bytes{8 * kMiB});
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspended");
  TestClient other = running(kMuch);
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "swapped");
  finish(other);
  resumed();
  expect_bytes(client);
}

TEST_F(SwapTest, OneThatIsSuspendedLaterMakesRoomForWhoWaitsAlready) {
  start(kOneDevice);
  TestClient client = with_bytes();
  TestClient other = begun(kMuch);
  ASSERT_TRUE(tell("suspend"));
  EXPECT_TRUE(other.wait_binding(Binding::kBound));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "swapped");
}

TEST_F(SwapTest, ForMoreMemoryOfARunningTask) {
  start(kOneDevice);
  TestClient client = with_bytes();
  suspended();
  TestClient other = running(Bytes{20 * kMiB});
  ASSERT_TRUE(other.declare(2, other.at(20), Bytes{30 * kMiB}));
  other.record(RecordType::kNeed, 2);
  EXPECT_TRUE(other.wait_completed(1)) << other.error_text();
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "swapped");
}

TEST_F(SwapTest, WhereSwapSpaceIsFullMemoryStays) {
  start(kOneDevice, "[swap]\nhost = \"32M\"\nidle = \"0s\"\n");
  TestClient client = with_bytes();
  const auto told = tell_to_swap();
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error().text, HasSubstr("it has 40 MiB, and 0 B of the 32 MiB of swap space (swap.host) is in use"));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "running");
  suspended();
  TestClient other = begun(kMuch);
  house_->wait_for("ps", [&](const Json&) { return session_of(other)["tasks"][0]["state"] == "waiting"; });
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspended");
  resumed();
  expect_bytes(client);
}

TEST_F(SwapTest, WithoutSwapSpaceItIsRefused) {
  start(kOneDevice, "[swap]\nhost = \"0\"\n");
  TestClient client = with_bytes();
  EXPECT_THAT(tell_to_swap().error().text, HasSubstr("has no swap space"));
}

TEST_F(SwapTest, UnderAPolicyThatDoesNotCountMemoryItIsRefused) {
  start(kOneDevice, "policy = \"cg:2\"\n");
  TestClient client = opened();
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{8 * kMiB}, true));
  ASSERT_TRUE(client.answer());
  job_ = session_of(client)["job"];
  EXPECT_THAT(tell_to_swap().error().text, HasSubstr("cg:2 does not count memory"));
}

TEST_F(SwapTest, MemoryThatIsAskedForMeanwhileIsThereAfterwards) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  ASSERT_TRUE(client.declare(2, client.at(24), Bytes{2 * kMiB}));
  client.record(RecordType::kNeed, 2);
  client.fill(client.at(24), 1);
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "swapped");
  resumed();
  expect_bytes(client);
  expect_used(kMuch + Bytes{2 * kMiB});
}

TEST_F(SwapTest, CancelledMeanwhileItLeavesNothing) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  ASSERT_TRUE(tell("cancel"));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  expect_nothing_left();
}

TEST_F(SwapTest, AProgramThatEndsMeanwhileLeavesNothing) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  end(client);
  expect_nothing_left();
}

TEST_F(SwapTest, AProgramThatEndsWhileItWaitsToComeBackLeavesNothing) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  TestClient other = running(kMuch);
  resumed();
  wait_for_state("waiting");
  end(client);
  EXPECT_EQ(swap_used(), Bytes{});
  expect_used(kMuch);
}

TEST_F(SwapTest, ItStaysSwappedOverRestarts) {
  start(kOneDevice);
  TestClient client = with_bytes();
  swapped();
  restart();
  wait_for_state("swapped");
  expect_used(Bytes{});
  EXPECT_EQ(swap_used(), kMuch);
  restart("heddle-vault");
  restart();
  wait_for_state("swapped");
  resumed();
  expect_bytes(client);
  finish(client);
  expect_nothing_left();
}

// Whatever it is at just then: what is copied counts only once all of it is. A vault starts heddled five times a
// minute.
TEST_F(SwapTest, HeddledDiesOnTheWayOut) {
  start(kOneDevice);
  TestClient client = with_bytes();
  for (useconds_t round = 0; round < 5; ++round) {
    ASSERT_TRUE(tell_to_swap());
    ::usleep(round * 4000);
    restart();
    wait_for_state("swapped");
    expect_used(Bytes{});
    EXPECT_EQ(swap_used(), kMuch);
    resumed();
    expect_bytes(client);
  }
}

TEST_F(SwapTest, HeddledDiesOnTheWayBack) {
  start(kOneDevice);
  TestClient client = with_bytes();
  for (useconds_t round = 0; round < 5; ++round) {
    swapped();
    resumed();
    ::usleep(round * 4000);
    restart();
    expect_bytes(client);
    expect_used(kMuch);
    EXPECT_EQ(swap_used(), Bytes{});
  }
}

TEST_F(SwapTest, ResumedOrEndedOnTheWayItLeavesNothingBehind) {
  start(kOneDevice);
  {
    TestClient client = with_bytes();
    for (int round = 0; round < 8; ++round) {
      ASSERT_TRUE(tell_to_swap());
      ::usleep(static_cast<useconds_t>(round * 3000));
      resumed();
      expect_bytes(client);
      EXPECT_EQ(swap_used(), Bytes{});
    }
    end(client);
    expect_nothing_left();
  }
  for (int round = 0; round < 6; ++round) {
    TestClient client = with_bytes();
    ASSERT_TRUE(tell_to_swap());
    ::usleep(static_cast<useconds_t>(round * 4000));
    end(client);
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace heddle::daemon::testing
