#pragma once

#include <gtest/gtest.h>

#include "simulator/world.h"

namespace heddle::simulator {

// What comes of the scenario, which has to run.
inline Outcome simulated(const Scenario& scenario) {
  auto outcome = World::run(scenario);
  EXPECT_TRUE(outcome) << outcome.error().text;
  return outcome ? std::move(*outcome) : Outcome{};
}

// To the nanoseconds that rounding takes.
inline void expect_at(std::optional<TimePoint> at, Duration expected) {
  ASSERT_TRUE(at);
  EXPECT_NEAR(double(at->time_since_epoch().count()), double(expected.count()), 10);
}

}  // namespace heddle::simulator
