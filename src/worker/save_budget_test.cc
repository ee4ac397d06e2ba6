#include "worker/save_budget.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

constexpr auto ms = [](int64_t count) { return Duration(std::chrono::milliseconds(count)); };
constexpr auto at = [](int64_t count) { return TimePoint(std::chrono::milliseconds(count)); };

TEST(SaveBudget, UnboundedAffordsEverything) {
  SaveBudget budget(0);
  budget.spend(ms(1000));
  EXPECT_TRUE(budget.affords(ms(1000), at(0)));
}

TEST(SaveBudget, BeginsWithALittle) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(SaveBudget::kFirst, at(1000)));
  EXPECT_FALSE(budget.affords(SaveBudget::kFirst + Duration(1), at(1000)))
      << "what passed before it was asked is not its own";
}

TEST(SaveBudget, HasItsShareOfTheTimeThatPasses) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(SaveBudget::kFirst, at(0)));
  budget.spend(SaveBudget::kFirst);
  EXPECT_FALSE(budget.affords(ms(1), at(49)));
  EXPECT_TRUE(budget.affords(ms(1), at(50)));
  budget.spend(ms(1));
  EXPECT_FALSE(budget.affords(ms(1), at(99)));
  EXPECT_TRUE(budget.affords(ms(1), at(100)));
}

TEST(SaveBudget, SavesUpToALimit) {
  SaveBudget budget(20);
  EXPECT_TRUE(budget.affords(ms(1), at(0)));
  EXPECT_TRUE(budget.affords(SaveBudget::kMost, at(3600 * 1000)));
  EXPECT_FALSE(budget.affords(SaveBudget::kMost + Duration(1), at(7200 * 1000)));
}

}  // namespace
}  // namespace heddle::worker
