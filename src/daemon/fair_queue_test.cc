#include "daemon/fair_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace heddle::daemon {
namespace {

std::string drained(FairQueue<char>& queue) {
  std::string order;
  while (const auto next = queue.pop()) order += *next;
  return order;
}

TEST(FairQueue, OneUsersThingsKeepTheirOrder) {
  FairQueue<char> queue;
  for (const char each : {'a', 'b', 'c'}) queue.push(1, each);
  EXPECT_EQ(queue.waiting(1), 3u);
  EXPECT_EQ(drained(queue), "abc");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.waiting(1), 0u);
}

TEST(FairQueue, WhoComesLaterWaitsForOneThingOfEachOther) {
  FairQueue<char> queue;
  for (int i = 0; i < 5; ++i) queue.push(1, 'a');
  for (int i = 0; i < 2; ++i) queue.push(2, 'b');
  queue.push(3, 'c');
  EXPECT_EQ(drained(queue), "abcabaaa");
}

TEST(FairQueue, WhoComesBackIsLastInTurn) {
  FairQueue<char> queue;
  queue.push(1, 'a');
  queue.push(2, 'b');
  EXPECT_EQ(*queue.pop(), 'a');
  queue.push(1, 'A');
  EXPECT_EQ(drained(queue), "bA");
}

}  // namespace
}  // namespace heddle::daemon
