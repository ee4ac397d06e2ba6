#pragma once

#include <gtest/gtest.h>

#include <sstream>

#include "simulator/replay.h"
#include "simulator/testing/simulated.h"
#include "simulator/testing/text_log.h"

namespace heddle::simulator {

// Jobs of three kinds that come at random, on two devices that cannot have all of them; with an even seed some are
// launched eagerly. On the host they are as long as `host` times their kind, from 0.
inline Scenario crowd(const char* policy, const char* dispatch, uint32_t seed, Duration host) {
  Scenario node;
  node.policy = policy;
  node.dispatch = dispatch;
  node.seed = seed;
  node.eager_launch = seed % 2 == 0;
  node.age_limit = std::chrono::seconds(2);
  node.revocation.resume = {};
  node.devices = {*device_preset("P100"), *device_preset("P100")};
  for (uint32_t kind = 0; kind < 3; ++kind) {
    JobLine& line = node.jobs.emplace_back();
    line.count = 10;
    line.every = std::chrono::milliseconds(200);
    line.random = true;
    line.shape.name = "kind " + std::to_string(kind);
    line.shape.need = {224, 256, 32, {}};
    line.shape.host = host * kind;
    line.shape.copy = std::chrono::milliseconds(5 * kind);
    line.shape.busy = std::chrono::milliseconds(50);
    line.shape.kernel = std::chrono::milliseconds(1);
    line.shape.bursts = 5;
    line.shape.memory = Bytes{(4 + kind) * kGiB};
    line.shape.buffers = {{Bytes{3 * kGiB}, Bytes{kGiB}, 1, 5}, {Bytes{(1 + kind) * kGiB}, Bytes{kGiB}, 1, 5}};
  }
  return node;
}

inline void expect_all_ended(const Outcome& outcome) {
  for (const JobOutcome& job : outcome.jobs) EXPECT_EQ(job.runs, 1u) << job.name << " " << job.refused;
}

// With its jobs of the second kind user-facing, under a deadline policy, which cannot be logged: all jobs end.
inline Outcome simulated_with_requests(Scenario node) {
  SCOPED_TRACE(node.policy + ", " + node.dispatch + ", seed " + std::to_string(node.seed));
  node.jobs[1].shape.kind = policy::JobClass::kUserFacing;
  Outcome outcome = simulated(node);
  expect_all_ended(outcome);
  return outcome;
}

// All jobs end, and what was decided is decided again from the log.
inline Outcome simulated_and_replayed(const Scenario& node) {
  SCOPED_TRACE(node.policy + ", " + node.dispatch + ", seed " + std::to_string(node.seed));
  TextLog log;
  auto outcome = World::run(node, &log);
  EXPECT_TRUE(outcome) << outcome.error().text;
  if (!outcome) return {};
  expect_all_ended(*outcome);
  std::istringstream text(log.text());
  const auto again = replay(text, "log");
  EXPECT_TRUE(again) << again.error().text;
  EXPECT_EQ(again ? again->different : 0, 0u);
  return std::move(*outcome);
}

}  // namespace heddle::simulator
