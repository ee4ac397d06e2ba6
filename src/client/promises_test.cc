#include "client/promises.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Promises, AnAllocationTakesTheOldestOfItsExactSize) {
  Promises promises;
  promises.open(1);
  promises.add(1, 4096, 0x1000);
  promises.add(1, 4096, 0x2000);
  promises.add(1, 64, 0x3000);
  EXPECT_EQ(promises.take(100), std::nullopt);
  EXPECT_EQ(promises.take(4096), 0x1000u);
  EXPECT_EQ(promises.take(4096), 0x2000u);
  EXPECT_EQ(promises.take(4096), std::nullopt);
}

TEST(Promises, WhatNobodyTookComesBackAtTheEnd) {
  Promises promises;
  promises.open(1);
  promises.add(1, 4096, 0x1000);
  promises.add(1, 64, 0x3000);
  promises.take(64);
  promises.allocated_without(10);
  const auto closed = promises.close(1);
  ASSERT_TRUE(closed);
  EXPECT_THAT(closed->left, ElementsAre(0x1000u));
  EXPECT_EQ(closed->account.declared, 4160u);
  EXPECT_EQ(closed->account.taken, 64u);
  EXPECT_EQ(closed->account.undeclared, 10u);
}

TEST(Promises, EndingATaskTwiceEndsItOnce) {
  Promises promises;
  promises.open(7);
  EXPECT_TRUE(promises.close(7));
  EXPECT_FALSE(promises.close(7));
}

TEST(Promises, TheEndOfOneTaskLeavesTheOthersPromises) {
  Promises promises;
  promises.open(1);
  promises.open(2);
  promises.add(1, 4096, 0x1000);
  promises.add(2, 4096, 0x2000);
  EXPECT_THAT(promises.close(1)->left, ElementsAre(0x1000u));
  EXPECT_EQ(promises.take(4096), 0x2000u);
  EXPECT_THAT(promises.close(2)->left, IsEmpty());
}

TEST(Promises, WithoutAnOpenTaskNothingIsCounted) {
  Promises promises;
  promises.allocated_without(10);
  promises.open(1);
  EXPECT_EQ(promises.close(1)->account.undeclared, 0u);
}

}  // namespace
}  // namespace heddle::client
