#include "daemon/events.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

constexpr uid_t kFirst = 1000, kSecond = 1001;

class EventQueueTest : public ::testing::Test {
 protected:
  void say(uid_t user, uint64_t client) { events_.post_of(user, ClientClosed{client, {}}); }
  // The client that the next event is about; 0: it is about something else.
  uint64_t next_client() {
    const auto event = events_.next();
    const auto* closed = event ? std::get_if<ClientClosed>(&*event) : nullptr;
    return closed ? closed->client : 0;
  }

  int due_ = 0;
  EventQueue events_{[this] { ++due_; }};
};

TEST_F(EventQueueTest, ATurnIsDueOnceForAllThatComesBeforeIt) {
  EXPECT_FALSE(events_.begin_turn());
  say(kFirst, 1);
  events_.post(WorkerWarm{DeviceId{0}});
  EXPECT_EQ(due_, 1);
  EXPECT_TRUE(events_.begin_turn());
  say(kFirst, 2);
  EXPECT_EQ(due_, 2);
}

TEST_F(EventQueueTest, UsersTakeTurns) {
  for (const uint64_t client : {1, 2, 3}) say(kFirst, client);
  say(kSecond, 4);
  EXPECT_EQ(next_client(), 1u);
  EXPECT_EQ(next_client(), 4u);
  EXPECT_EQ(next_client(), 2u);
  EXPECT_EQ(next_client(), 3u);
  EXPECT_FALSE(events_.next());
}

// Workers work for tenants too: what they say without end must not keep everybody else from being heard.
TEST_F(EventQueueTest, AUserWaitsForAFewOtherEventsAtMost) {
  for (int i = 0; i < 1000; ++i) events_.post(WorkerWarm{DeviceId{0}});
  say(kFirst, 1);
  int before = 0;
  while (before < 1000 && next_client() != 1) ++before;
  EXPECT_LT(before, 32);
}

TEST_F(EventQueueTest, WhatIsLeftIsForTheNextTurn) {
  say(kFirst, 1);
  say(kFirst, 2);
  ASSERT_TRUE(events_.begin_turn());
  EXPECT_EQ(next_client(), 1u);
  EXPECT_TRUE(events_.leave_rest());
  EXPECT_TRUE(events_.begin_turn());
  EXPECT_EQ(next_client(), 2u);
  EXPECT_FALSE(events_.leave_rest());
  EXPECT_FALSE(events_.begin_turn());
}

}  // namespace
}  // namespace heddle::daemon
