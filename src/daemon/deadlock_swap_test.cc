// Programs that hold memory of a device and wait for more of it, all of them: one leaves, and comes back with all that
// it wants. Nobody is told an error.

#include <csignal>

#include "daemon/testing/swap_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using ::testing::HasSubstr;

constexpr const char* kNobodyIsIdle = "[swap]\nidle = \"0s\"\n";
constexpr Bytes kHeld{16 * kMiB}, kMore{20 * kMiB};  // three of the first and one of the second do not fit kOneDevice

class DeadlockSwapTest : public SwapTest {
 protected:
  TestClient holder(uint32_t value) {
    TestClient client = running(kHeld);
    client.record(RecordType::kNeed, 1);
    client.fill(client.at(0), value);
    EXPECT_TRUE(client.wait_completed(2));
    return client;
  }
  static void wants_more(TestClient& client) {
    EXPECT_TRUE(client.declare(2, client.at(10), kMore));
    client.record(RecordType::kNeed, 2);
    client.fill(client.at(10), 1);
  }
  // It got what it wanted, and has what it had.
  static void ends_well(TestClient& client, uint32_t value) {
    EXPECT_TRUE(client.wait_completed(client.writer().last_sequence())) << client.error_text();
    client.record(RecordType::kNeed, 1);
    client.record(RecordType::kTextureGone, client.at(0));
    EXPECT_TRUE(client.wait_fault(value)) << client.error_text();
    EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
    client.record(RecordType::kFree, 2);
    finish(client);
  }
  void wait_until_waiting(const TestClient& client) {
    house_->wait_for("ps", [&](const Json&) { return task_of(client).value("state", "") == "waiting for memory"; });
  }
  Json task_of(const TestClient& client) {
    const Json session = session_of(client);
    return session.is_object() && !session["tasks"].empty() ? session["tasks"][0] : Json::object();
  }
};

TEST_F(DeadlockSwapTest, OfThreeTheYoungestLeavesAndAllEndWell) {
  start(kOneDevice, kNobodyIsIdle);
  TestClient first = holder(3), second = holder(4), third = holder(5);
  for (TestClient* each : {&first, &second}) {
    wants_more(*each);
    wait_until_waiting(*each);
  }
  wants_more(third);
  ends_well(first, 3);
  EXPECT_EQ(task_of(third)["swaps"], 1);
  ends_well(second, 4);
  ends_well(third, 5);
  expect_nothing_left();
}

TEST_F(DeadlockSwapTest, WhereSwapSpaceIsFullTheYoungestIsRefusedAndHearsWhy) {
  start(kOneDevice, "[swap]\nidle = \"0s\"\nhost = \"8M\"\n");
  TestClient first = holder(3), second = holder(4), third = holder(5);
  for (TestClient* each : {&first, &second}) {
    wants_more(*each);
    wait_until_waiting(*each);
  }
  wants_more(third);
  ASSERT_TRUE(third.wait_binding(Binding::kFailed));
  EXPECT_THAT(third.error_text(), HasSubstr("waiting could never end"));
  EXPECT_THAT(third.error_text(), HasSubstr("it has 16 MiB, and 0 B of the 8 MiB of swap space (swap.host) is in use"));
  ends_well(first, 3);
  ends_well(second, 4);
}

TEST_F(DeadlockSwapTest, OneThatNoOtherWorkerCouldGoOnWithIsRefusedAndHearsWhy) {
  start(kOneDevice, kNobodyIsIdle);
  TestClient first = holder(3), second = holder(4), third = holder(5);
  third.record(RecordType::kLimit);
  ASSERT_TRUE(third.wait_completed(3));
  for (TestClient* each : {&first, &second}) {
    wants_more(*each);
    wait_until_waiting(*each);
  }
  wants_more(third);
  ASSERT_TRUE(third.wait_binding(Binding::kFailed));
  EXPECT_THAT(third.error_text(), HasSubstr("device malloc"));
  ends_well(first, 3);
  ends_well(second, 4);
}

TEST_F(DeadlockSwapTest, WhatIsFoundInTheWayOnlyThenIsToldToo) {
  start(kOneDevice, kNobodyIsIdle);
  TestClient first = holder(3), second = holder(4), third = holder(5);
  third.record(RecordType::kLimit, kWhenSuspended);
  ASSERT_TRUE(third.wait_completed(3));
  for (TestClient* each : {&first, &second}) {
    wants_more(*each);
    wait_until_waiting(*each);
  }
  wants_more(third);
  ASSERT_TRUE(third.wait_binding(Binding::kFailed));
  EXPECT_THAT(third.error_text(), HasSubstr("device malloc"));
  ends_well(first, 3);
  ends_well(second, 4);
}

TEST_F(DeadlockSwapTest, WhoEndsOnItsWayLeavesNothing) {
  start(kOneDevice, kNobodyIsIdle);
  for (useconds_t round = 0; round < 6; ++round) {
    TestClient first = holder(3), second = holder(4), third = holder(5);
    for (TestClient* each : {&first, &second}) {
      wants_more(*each);
      wait_until_waiting(*each);
    }
    wants_more(third);
    ::usleep(round * 4000);
    end(third);
    ends_well(first, 3);
    ends_well(second, 4);
    expect_nothing_left();
  }
}

// A vault starts heddled five times a minute.
TEST_F(DeadlockSwapTest, HeddledDiesOnTheWay) {
  start(kOneDevice, kNobodyIsIdle);
  for (useconds_t round = 0; round < 5; ++round) {
    TestClient first = holder(3), second = holder(4), third = holder(5);
    for (TestClient* each : {&first, &second}) {
      wants_more(*each);
      wait_until_waiting(*each);
    }
    wants_more(third);
    ::usleep(2000 + round * 5000);
    restart();
    for (TestClient* each : {&first, &second, &third}) ASSERT_TRUE(each->resume(house_->socket()));
    ASSERT_TRUE(third.declare(2, third.at(10), kMore));  // which the first heddled may not have read
    std::vector<std::pair<TestClient*, uint32_t>> left{{&first, 3}, {&second, 4}, {&third, 5}};
    while (!left.empty()) {
      // Whoever asked again first is the oldest.
      const auto ready = [](const auto& each) {
        return each.first->header().completed.load() >= each.first->writer().last_sequence();
      };
      const auto next = std::find_if(left.begin(), left.end(), ready);
      if (next == left.end()) {
        for (const auto& each : left) ASSERT_EQ(each.first->header().error.load(), 0u) << each.first->error_text();
        ::usleep(1000);
        continue;
      }
      ends_well(*next->first, next->second);
      left.erase(next);
    }
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace heddle::daemon::testing
