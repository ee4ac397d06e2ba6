#include "worker/save_budget.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

constexpr auto at = [](int64_t ms) { return TimePoint(std::chrono::milliseconds(ms)); };
// Takes so long, its stamp included.
constexpr SaveBudget::Save save(Duration takes) {
  return {.bytes = 0, .copies = 1, .used = 0, .takes = takes - SaveBudget::kEachCopy};
}
constexpr SaveBudget::Save ms(int64_t count) {
  return save(std::chrono::milliseconds(count));
}

TEST(SaveBudget, UnboundedAffordsEverything) {
  SaveBudget budget(0);
  budget.spend(ms(1000));
  EXPECT_TRUE(budget.affords(ms(1000), at(0)));
}

TEST(SaveBudget, BeginsWithALittle) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(save(SaveBudget::kFirst), at(1000)));
  EXPECT_FALSE(budget.affords(save(SaveBudget::kFirst + Duration(1)), at(1000))) << "what passed before is not its own";
}

TEST(SaveBudget, HasItsShareOfTheTimeThatPasses) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(save(SaveBudget::kFirst), at(0)));
  budget.spend(save(SaveBudget::kFirst));
  EXPECT_FALSE(budget.affords(ms(1), at(49)));
  EXPECT_TRUE(budget.affords(ms(1), at(50)));
  budget.spend(ms(1));
  EXPECT_FALSE(budget.affords(ms(1), at(99)));
  EXPECT_TRUE(budget.affords(ms(1), at(100)));
  EXPECT_TRUE(budget.affords({}, at(100))) << "what needs no copy costs nothing";
}

TEST(SaveBudget, SavesUpToALimit) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(ms(1), at(0)));
  EXPECT_TRUE(budget.affords(save(SaveBudget::kMost), at(3600 * 1000)));
  EXPECT_FALSE(budget.affords(save(SaveBudget::kMost + Duration(1)), at(7200 * 1000)));
}

TEST(SaveBudget, OfAGuardedWorkerIsWhatASecondComesTo) {
  SaveBudget budget = SaveBudget::guarded(20);
  EXPECT_TRUE(budget.affords(ms(100), at(0)));
  budget.spend(ms(100));
  EXPECT_FALSE(budget.affords(ms(1), at(9)));
  EXPECT_TRUE(budget.affords(ms(1), at(10)));
  EXPECT_FALSE(SaveBudget::guarded(0).is_bounded()) << "the level says so";
}

TEST(SaveBudget, CopiesThatHadToBeMadeMayTakeMoreThanThereIs) {
  SaveBudget budget = SaveBudget::guarded(20);
  EXPECT_TRUE(budget.covers(std::chrono::milliseconds(60), at(0)));
  EXPECT_FALSE(budget.covers(std::chrono::milliseconds(60), at(100)));
  EXPECT_TRUE(budget.covers(std::chrono::milliseconds(1), at(300))) << "made good";
  EXPECT_TRUE(SaveBudget::guarded(0).covers(std::chrono::seconds(60), at(0)));
}

TEST(SaveBudget, WhatIsNotMeasuredIsAssumedAndTheFirstUseOfSpaceCosts) {
  constexpr uint64_t kBytes = 1'000'000;
  SaveBudget budget(20);
  const SaveBudget::Save first{.bytes = kBytes, .copies = 2, .used = 0, .takes = {}};
  EXPECT_EQ(budget.cost_of(first), Duration(100'000 + 10'000 + 300'000));
  ASSERT_TRUE(budget.affords(first, at(0)));
  budget.spend(first);
  EXPECT_EQ(budget.cost_of(first), Duration(100'000 + 10'000)) << "the space was used before";
  const SaveBudget::Save half_behind{.bytes = kBytes, .copies = 2, .used = kBytes / 2, .takes = {}};
  EXPECT_EQ(budget.cost_of(half_behind), Duration(100'000 + 10'000 + 150'000));
}

}  // namespace
}  // namespace heddle::worker
