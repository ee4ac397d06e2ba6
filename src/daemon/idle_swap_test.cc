// Programs that do nothing with their devices while others wait: they give way, and come back by themselves.

#include <csignal>

#include "daemon/testing/swap_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

constexpr const char* kAtOnce = "[swap]\nidle = \"30ms\"\n";

class IdleSwapTest : public SwapTest {
 protected:
  Json task_of(const TestClient& client) {
    const Json session = session_of(client);
    return session.is_object() && !session["tasks"].empty() ? session["tasks"][0] : Json::object();
  }
  void wait_for_state_of(const TestClient& client, const std::string& state) {
    house_->wait_for("ps", [&](const Json&) { return task_of(client).value("state", "") == state; });
  }
  // Somebody else, who needs the device of `client`'s job, and has got it.
  TestClient taking_its_place(Bytes bytes = kMuch) {
    TestClient other = begun(bytes);
    EXPECT_TRUE(other.wait_binding(Binding::kBound)) << other.error_text();
    return other;
  }
};

TEST_F(IdleSwapTest, AnIdleProgramGivesWayAndComesBackByItself) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  const Json away = task_of(client);
  EXPECT_EQ(away["state"], "swapped");
  EXPECT_EQ(away["gives_way"], "idle");
  EXPECT_EQ(away["swaps"], 1);
  EXPECT_THAT(away["reason"].get<std::string>(), HasSubstr("it goes on when its program uses the device"));
  EXPECT_EQ(swap_used(), kMuch);
  expect_used(kMuch);
  finish(other);
  expect_used(Bytes{});
  EXPECT_EQ(task_of(client)["state"], "swapped");
  expect_bytes(client);
  EXPECT_FALSE(task_of(client).contains("gives_way"));
  EXPECT_EQ(swap_used(), Bytes{});
  finish(client);
  expect_nothing_left();
}

TEST_F(IdleSwapTest, TwoTakeTurns) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  other.record(RecordType::kNeed, 1);
  other.fill(other.at(0), 5);
  ASSERT_TRUE(other.wait_completed(2));
  for (int round = 0; round < 2; ++round) {
    expect_bytes(client);  // behind the other, which has to give way
    other.record(RecordType::kNeed, 1);
    other.record(RecordType::kTextureGone, other.at(0));
    EXPECT_TRUE(other.wait_completed(other.writer().last_sequence())) << other.error_text();
    EXPECT_EQ(other.header().fault.load(), 5u);
  }
  EXPECT_EQ(task_of(client)["swaps"], 3);
  EXPECT_EQ(task_of(other)["swaps"], 2);
}

TEST_F(IdleSwapTest, OneThatComputesKeepsItsDevice) {
  start(kOneDevice, kAtOnce);
  TestClient busy = running(Bytes{20 * kMiB});
  compute(busy);
  TestClient client = with_bytes(Bytes{30 * kMiB});
  TestClient other = taking_its_place(Bytes{20 * kMiB});
  EXPECT_EQ(task_of(busy)["state"], "running");
  EXPECT_EQ(task_of(client)["state"], "swapped");
  finish(other);
  expect_bytes(client);
}

TEST_F(IdleSwapTest, OneThatNoOtherWorkerCouldGoOnWithKeepsItsDevice) {
  start(kOneDevice, kAtOnce);
  TestClient fixed = running(Bytes{20 * kMiB});
  fixed.record(RecordType::kLimit);
  ASSERT_TRUE(fixed.wait_completed(1));
  TestClient client = with_bytes(Bytes{30 * kMiB});
  TestClient other = taking_its_place(Bytes{20 * kMiB});
  EXPECT_EQ(task_of(fixed)["state"], "running");
  EXPECT_EQ(task_of(client)["state"], "swapped");
}

TEST_F(IdleSwapTest, WhatIsFoundInTheWayOnlyThenLeavesItWhereItIs) {
  start(kOneDevice, kAtOnce);
  TestClient fixed = running(Bytes{20 * kMiB});
  fixed.record(RecordType::kLimit, kWhenSuspended);
  ASSERT_TRUE(fixed.wait_completed(1));
  TestClient client = with_bytes(Bytes{30 * kMiB});
  TestClient other = taking_its_place(Bytes{20 * kMiB});
  EXPECT_EQ(task_of(client)["state"], "swapped");
  fixed.fill(fixed.at(0), 1);
  EXPECT_TRUE(fixed.wait_completed(2)) << fixed.error_text();
  EXPECT_EQ(task_of(fixed).value("swaps", 0), 0);
}

TEST_F(IdleSwapTest, WhereThereIsNoSwapSpaceItKeepsItsDevice) {
  start(kOneDevice, "[swap]\nidle = \"30ms\"\nhost = \"24M\"\n");
  TestClient large = running(Bytes{30 * kMiB}), client = with_bytes(Bytes{20 * kMiB});
  TestClient other = taking_its_place(Bytes{20 * kMiB});
  EXPECT_EQ(task_of(large)["state"], "running");
  EXPECT_EQ(task_of(client)["state"], "swapped");
  TestClient more = begun(Bytes{30 * kMiB});
  wait_for_state_of(more, "waiting");
  finish(large);
  EXPECT_TRUE(more.wait_binding(Binding::kBound)) << more.error_text();
  EXPECT_EQ(large.header().error.load(), 0u);
}

TEST_F(IdleSwapTest, MemoryThatItAsksForBringsItBack) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  ASSERT_TRUE(client.declare(2, client.at(24), Bytes{2 * kMiB}, true));
  const auto answer = client.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cuda_error, 0u);
  expect_bytes(client);
  expect_used(kMuch + Bytes{2 * kMiB});
}

// Whatever it is at when the program has work again: on its way out, away, or on its way back.
TEST_F(IdleSwapTest, AtAnyMomentNothingIsLost) {
  start(kOneDevice, "[swap]\nidle = \"2ms\"\n");
  TestClient client = with_bytes();
  uint64_t swaps = 0;
  for (useconds_t round = 0; round < 24; ++round) {
    TestClient other = begun(kMuch);
    ::usleep(round * 1000);
    client.record(RecordType::kNeed, 1);
    // It may have left its device again before anybody sees that it was bound, and comes back to end.
    finish(other);
    EXPECT_TRUE(other.wait_completed(other.writer().last_sequence())) << other.error_text();
    expect_bytes(client);
    swaps = task_of(client).value("swaps", 0);
  }
  EXPECT_GT(swaps, 0u);
  finish(client);
  expect_nothing_left();
}

TEST_F(IdleSwapTest, ASuspendedJobStaysAwayWhateverItsProgramDoes) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  ASSERT_TRUE(tell("suspend"));
  client.record(RecordType::kNeed, 1);
  EXPECT_EQ(task_of(client)["state"], "swapped");
  EXPECT_THAT(task_of(client)["reason"].get<std::string>(), HasSubstr("heddle resume"));
  resumed();
  expect_bytes(client);
}

TEST_F(IdleSwapTest, AJobThatIsResumedStaysAwayUntilItsProgramHasWork) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  ASSERT_TRUE(tell("suspend"));
  resumed();
  EXPECT_EQ(task_of(client)["state"], "swapped");
  expect_bytes(client);
}

TEST_F(IdleSwapTest, AProgramThatEndsMeanwhileLeavesNothing) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  end(client);
  EXPECT_EQ(swap_used(), Bytes{});
  finish(other);
  expect_nothing_left();
}

TEST_F(IdleSwapTest, ItStaysAwayOverRestartsAndComesBackBehindThem) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  restart();
  EXPECT_EQ(task_of(client)["state"], "swapped");
  EXPECT_EQ(task_of(client)["swaps"], 1);
  restart("heddle-vault");
  EXPECT_EQ(task_of(client)["state"], "swapped");
  EXPECT_EQ(swap_used(), kMuch);
  ASSERT_TRUE(client.resume(house_->socket()));
  expect_bytes(client);
  finish(client);
  expect_nothing_left();
}

// It told the one that had died.
TEST_F(IdleSwapTest, WorkThatNobodyWasToldOfIsFoundWhenTheProgramConnectsAgain) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  restart();
  EXPECT_EQ(task_of(client)["state"], "swapped");
  client.record(RecordType::kNeed, 1);
  EXPECT_EQ(task_of(client)["state"], "swapped");
  ASSERT_TRUE(client.resume(house_->socket()));
  EXPECT_TRUE(client.wait_completed(client.writer().last_sequence())) << client.error_text();
  expect_bytes(client);
}

TEST_F(IdleSwapTest, WorkThatCameWhileHeddledWasAwayIsFoundByItsSuccessor) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  TestClient other = taking_its_place();
  finish(other);
  const pid_t old = house_->heddled();
  house_->signal(old, SIGSTOP);
  client.record(RecordType::kNeed, 1);
  house_->kill(old);
  house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  expect_bytes(client);
}

// A vault starts heddled five times a minute.
TEST_F(IdleSwapTest, HeddledDiesOnTheWay) {
  start(kOneDevice, kAtOnce);
  TestClient client = with_bytes();
  for (useconds_t round = 0; round < 5; ++round) {
    TestClient other = begun(kMuch);
    ::usleep(40'000 + round * 5000);
    restart();
    EXPECT_TRUE(other.wait_binding(Binding::kBound)) << other.error_text();
    wait_for_state_of(client, "swapped");
    finish(other);
    ASSERT_TRUE(client.resume(house_->socket()));
    expect_bytes(client);
    EXPECT_EQ(swap_used(), Bytes{});
  }
  finish(client);
  expect_nothing_left();
}

}  // namespace
}  // namespace heddle::daemon::testing
