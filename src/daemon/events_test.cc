#include "daemon/events.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

constexpr uid_t kFirst = 1000, kSecond = 1001;

TEST(EventQueue, SaysOnceThatATurnIsDue) {
  int due = 0;
  EventQueue events([&] { ++due; });
  EXPECT_FALSE(events.begin_turn());
  events.post(ProcessEnded{SessionId{1}});
  events.books_changed();
  EXPECT_EQ(due, 1);
  EXPECT_TRUE(events.begin_turn());
  events.post(ProcessEnded{SessionId{2}});
  EXPECT_EQ(due, 2);
}

TEST(EventQueue, KeepsTheOrderInWhichThingsWereNoticed) {
  EventQueue events([] {});
  events.post(ProcessEnded{SessionId{1}});
  events.post(WorkerGone{WorkerId{2}, "signal 9", true});
  EXPECT_EQ(std::get<ProcessEnded>(*events.next()).session, SessionId{1});
  EXPECT_EQ(std::get<WorkerGone>(*events.next()).worker, WorkerId{2});
  EXPECT_FALSE(events.next());
  EXPECT_FALSE(events.take_books_changed());
}

class TurnsOfUsersTest : public ::testing::Test {
 protected:
  void say(uid_t user, uint64_t client) { events_.post_of(user, ClientClosed{client, {}}); }
  // The client that the next event is about; 0: it is about something else.
  uint64_t next_client() {
    const auto event = events_.next();
    const auto* closed = event ? std::get_if<ClientClosed>(&*event) : nullptr;
    return closed ? closed->client : 0;
  }

  EventQueue events_{[] {}};
};

TEST_F(TurnsOfUsersTest, UsersTakeTurns) {
  for (const uint64_t client : {1, 2, 3}) say(kFirst, client);
  say(kSecond, 4);
  EXPECT_EQ(next_client(), 1u);
  EXPECT_EQ(next_client(), 4u);
  EXPECT_EQ(next_client(), 2u);
  EXPECT_EQ(next_client(), 3u);
  EXPECT_FALSE(events_.next());
}

// Workers work for tenants too: what they say without end must not keep everybody else from being heard.
TEST_F(TurnsOfUsersTest, AUserWaitsForAFewOtherEventsAtMost) {
  for (int i = 0; i < 1000; ++i) events_.post(WorkerWarm{DeviceId{0}});
  say(kFirst, 1);
  int before = 0;
  while (before < 1000 && next_client() != 1) ++before;
  EXPECT_LT(before, 32);
}

TEST_F(TurnsOfUsersTest, WhatIsLeftIsForTheNextTurn) {
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
