#include "client/device/promises.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::client {
namespace {

struct PromisesTest : ::testing::Test {
  protocol::TaskTotals totals{};
  Promises promises{totals};
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(PromisesTest, AnAllocationTakesTheOldestOfItsExactSize) {
  promises.open(1);
  promises.add(1, 4096, 0x1000);
  promises.add(1, 4096, 0x2000);
  promises.add(1, 64, 0x3000);
  EXPECT_EQ(promises.take(100), std::nullopt);
  EXPECT_EQ(promises.take(4096), 0x1000u);
  EXPECT_EQ(promises.take(4096), 0x2000u);
  EXPECT_EQ(promises.take(4096), std::nullopt);
}

TEST_F(PromisesTest, WhatNobodyTookComesBackAtTheEnd) {
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

TEST_F(PromisesTest, WhatNobodyWillTakeComesBackBeforeTheEnd) {
  promises.open(1);
  promises.open(2);
  promises.add(1, 4096, 0x1000);
  promises.add(1, 64, 0x3000);
  promises.add(2, 64, 0x4000);
  promises.take(4096);
  EXPECT_THAT(promises.untaken(1), ElementsAre(0x3000u));
  EXPECT_THAT(promises.untaken(1), IsEmpty());
  EXPECT_EQ(promises.take(64), 0x4000u);
  const auto closed = promises.close(1);
  ASSERT_TRUE(closed);
  EXPECT_THAT(closed->left, IsEmpty());
  EXPECT_EQ(closed->account.declared, 4160u);
}

TEST_F(PromisesTest, EndingATaskTwiceEndsItOnce) {
  promises.open(7);
  EXPECT_TRUE(promises.close(7));
  EXPECT_FALSE(promises.close(7));
}

TEST_F(PromisesTest, TheEndOfOneTaskLeavesTheOthersPromises) {
  promises.open(1);
  promises.open(2);
  promises.add(1, 4096, 0x1000);
  promises.add(2, 4096, 0x2000);
  EXPECT_THAT(promises.close(1)->left, ElementsAre(0x1000u));
  EXPECT_EQ(promises.take(4096), 0x2000u);
  EXPECT_THAT(promises.close(2)->left, IsEmpty());
}

TEST_F(PromisesTest, WithoutAnOpenTaskNothingIsCounted) {
  promises.allocated_without(10);
  promises.open(1);
  EXPECT_EQ(promises.close(1)->account.undeclared, 0u);
  EXPECT_EQ(totals.beside, 0u);
}

TEST_F(PromisesTest, TotalsGoOnOverTheEndsOfTasks) {
  for (const uint64_t task : {1, 2}) {
    promises.open(task);
    promises.add(task, 4096, 0x1000 * task);
    promises.add(task, 64, 0x1800 * task);
    promises.take(4096);
    promises.allocated_without(10);
    promises.close(task);
  }
  EXPECT_EQ(totals.tasks, 2u);
  EXPECT_EQ(totals.declared, 8320u);
  EXPECT_EQ(totals.used, 8192u);
  EXPECT_EQ(totals.beside, 20u);
}

}  // namespace
}  // namespace heddle::client
