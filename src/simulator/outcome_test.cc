#include "simulator/outcome.h"

#include <gtest/gtest.h>

namespace heddle::simulator {
namespace {

constexpr TimePoint after(int64_t count) {
  return TimePoint{std::chrono::seconds(count)};
}

JobOutcome job(int64_t arrived, int64_t ended, int64_t busy, size_t line = 0) {
  JobOutcome outcome;
  outcome.line = line;
  outcome.arrived = after(arrived);
  outcome.busy = std::chrono::seconds(busy);
  if (ended == 0) return outcome;
  outcome.ended = after(ended);
  outcome.turnaround = *outcome.ended - outcome.arrived;
  outcome.runs = 1;
  return outcome;
}

TEST(Outcome, SpeedAndTurnaroundAreOfThoseThatEnded) {
  const Outcome outcome{{job(0, 10, 5), job(2, 6, 4), job(3, 0, 1)}, {}, std::chrono::seconds(10), 0};
  EXPECT_EQ(outcome.completed(), 2u);
  EXPECT_DOUBLE_EQ(outcome.runs_per_second(), 0.2);
  EXPECT_EQ(outcome.mean_turnaround(), std::chrono::seconds(7));
}

TEST(Outcome, TurnaroundIsOfEachRun) {
  JobOutcome twice = job(0, 10, 5);
  twice.runs = 2;
  EXPECT_EQ((Outcome{{twice, job(0, 2, 1)}, {}, {}, 0}.mean_turnaround()), std::chrono::seconds(4));
  EXPECT_DOUBLE_EQ(weighted_speedup({{twice}, {}, {}, 0}, {{job(0, 10, 5)}, {}, {}, 0}), 2);
}

TEST(Outcome, JainsIndexGoesByWeights) {
  EXPECT_DOUBLE_EQ(jain_index({{job(0, 1, 4), job(0, 1, 4)}, {}, {}, 0}, {1}), 1);
  EXPECT_DOUBLE_EQ(jain_index({{job(0, 1, 8), job(0, 1, 0)}, {}, {}, 0}, {1}), 0.5);
  EXPECT_DOUBLE_EQ(jain_index({{job(0, 1, 6, 0), job(0, 1, 2, 1)}, {}, {}, 0}, {3, 1}), 1);
  EXPECT_DOUBLE_EQ(jain_index({}, {}), 1);
}

TEST(Outcome, WeightedSpeedupIsTheMeanOfTheRatios) {
  const Outcome base{{job(0, 10, 1), job(0, 8, 1)}, {}, {}, 0}, faster{{job(0, 5, 1), job(0, 8, 1)}, {}, {}, 0};
  EXPECT_DOUBLE_EQ(weighted_speedup(faster, base), 1.5);
}

}  // namespace
}  // namespace heddle::simulator
