#include "core/log_budget.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr LogBudget::Rates kRates{.burst = 3, .per_second = 2};

TEST(LogBudget, WritesABurstAndThenAtItsRate) {
  LogBudget budget(kRates);
  TimePoint now{};
  int written = 0;
  for (int i = 0; i < 100; ++i) written += budget.ask("process " + std::to_string(i) + " is refused", now).write;
  EXPECT_EQ(written, 3);
  for (int i = 0; i < 100; ++i) written += budget.ask("process 7 is refused", now += milliseconds(100)).write;
  EXPECT_EQ(written, 3 + 20);
}

TEST(LogBudget, TellsHowManyWereLeftOut) {
  LogBudget budget(kRates);
  for (int i = 0; i < 10; ++i) budget.ask("worker 1: free", TimePoint{});
  const auto next = budget.ask("worker 2: free", TimePoint{} + seconds(1));
  EXPECT_TRUE(next.write);
  EXPECT_EQ(next.left_out, 7u);
}

TEST(LogBudget, OtherKindsHaveBudgetsOfTheirOwn) {
  LogBudget budget(kRates);
  for (int i = 0; i < 10; ++i) budget.ask("worker 1: free", TimePoint{});
  EXPECT_TRUE(budget.ask("session 4 is over", TimePoint{}).write);
}

// A tenant whose texts are all different gets no more of the log than one kind's share.
TEST(LogBudget, WhoMakesUpKindsSharesOneBudget) {
  LogBudget budget(kRates);
  int written = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string name{static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26),
                           static_cast<char>('a' + i / 676 % 26)};
    written += budget.ask(name, TimePoint{}).write;
  }
  EXPECT_LE(budget.kinds(), 257u);
  EXPECT_LE(written, 257 * 3);
}

// Else whoever made up so many once would have put all later kinds on one budget for good.
TEST(LogBudget, KindsThatRestedMakeRoom) {
  LogBudget budget(kRates);
  const auto make_up = [&](TimePoint now) {
    for (int i = 0; i < 300; ++i)
      budget.ask(std::string{static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26)}, now);
  };
  make_up(TimePoint{});
  make_up(TimePoint{});
  const TimePoint later = TimePoint{} + seconds(2);
  for (int i = 0; i < 10; ++i) budget.ask("worker 1: free", later);
  EXPECT_TRUE(budget.ask("session 4 is over", later).write);
  EXPECT_LE(budget.kinds(), 257u);
}

}  // namespace
}  // namespace heddle
