#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/units.h"

namespace heddle::daemon {

// How many workers should stand ready on a device, or be on their way. A worker of a GPU takes 200 to 340 ms to build
// its context (HARDWARE.md), which is then device memory that nobody computes with: so more than the configuration
// says are there only for programs that are expected, and only in memory that is free.

// So long after a program took a worker from the pool another is expected.
inline constexpr Duration kArrivalWindow = std::chrono::seconds(3);
// So long after its Hello a program is expected to begin a task.
inline constexpr Duration kHelloWindow = std::chrono::seconds(10);
inline constexpr size_t kMostExpected = 8;
// Under MPS a fault ends all of a GPU's contexts, one after the other: 48 ms each (H100), in which nobody is served.
inline constexpr size_t kMostForArrivalsUnderMps = 1;
// Of the free memory at most one part in so many goes to contexts of workers that nobody has asked for.
inline constexpr uint64_t kFreeMemoryPart = 8;

struct WarmDemand {
  size_t configured = 0;  // warm_workers; space for their contexts is never promised to programs
  size_t greeted = 0;     // sessions that have said Hello, had no worker yet, and will most likely come here
  size_t arrivals = 0;    // workers taken from the pool within the window
  bool under_mps = false;
  Bytes free;     // of the device's memory
  Bytes context;  // what one worker's context takes; 0: nothing
};

inline size_t warm_target(const WarmDemand& demand) {
  const size_t guessed = demand.under_mps ? std::min(demand.arrivals, kMostForArrivalsUnderMps) : demand.arrivals;
  const size_t expected = std::min(std::max(demand.greeted, guessed), kMostExpected);
  if (expected <= demand.configured) return demand.configured;
  const size_t more = expected - demand.configured;
  if (demand.context.value == 0) return expected;
  return demand.configured + std::min<size_t>(more, demand.free.value / kFreeMemoryPart / demand.context.value);
}

// Which devices sessions will most likely come to: the ones with the fewest tasks, each session counting as one more.
// How many go to each of them.
inline std::vector<size_t> spread_sessions(size_t sessions, std::vector<size_t> tasks) {
  std::vector<size_t> shares(tasks.size());
  for (size_t i = 0; i < sessions && !tasks.empty(); ++i) {
    const auto least = std::min_element(tasks.begin(), tasks.end()) - tasks.begin();
    ++tasks[static_cast<size_t>(least)];
    ++shares[static_cast<size_t>(least)];
  }
  return shares;
}

}  // namespace heddle::daemon
