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
// So many clients of MPS serve programs at once: it admits 48, and warm and leaving workers are some, too.
inline constexpr uint32_t kMostMpsClients = 40;
// Of the free memory at most one part in so many goes to contexts of workers that nobody has asked for.
inline constexpr uint64_t kFreeMemoryPart = 8;

// How many of `most` workers that nobody has asked for have a context in the free memory.
inline size_t within_free_memory(size_t most, Bytes free, Bytes context) {
  if (context.value == 0) return most;
  return std::min<size_t>(most, free.value / kFreeMemoryPart / context.value);
}

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
  return demand.configured + within_free_memory(expected - demand.configured, demand.free, demand.context);
}

// Workers that stand ready outside of MPS, for programs that a shared fault will stop there (shared_faults.h), or that
// come before MPS is back: where no work can be run again nobody is tried, and one is enough. A
// context takes 0.1 to 0.14 s to make, one after the other for all of a GPU's programs, beside 0.03 s for each that
// ends: five that are made at the fault are there after 1.1 s, those that stand ready after 0.4. One more than there
// are clients, since it is often the next one that faults; none for one that is alone, which is never tried. Where
// programs leave MPS by themselves one is there for the next of these.
inline constexpr size_t kMostReserved = 8;

struct ReserveDemand {
  size_t clients = 0;         // of MPS, that serve programs
  bool can_be_tried = false;  // their work may be run again
  bool may_leave = false;     // or have them leave (MpsMode::kAuto)
  Bytes free, context;        // as WarmDemand has them
};

inline size_t reserve_target(const ReserveDemand& demand) {
  const size_t tried = demand.can_be_tried ? std::min(demand.clients + 1, kMostReserved) : 1;
  const size_t wanted = demand.clients < 2 ? size_t{demand.may_leave} : tried;
  return within_free_memory(wanted, demand.free, demand.context);
}

// Who needs a context on a GPU after a fault. The driver creates contexts one after the other, 0.1 s each: six that are
// begun at once are all there after 0.6 s, and none before. Contexts for trials come first, because nobody knows before
// the trials end who is guilty. Then come those of programs that wait without a worker, and last, one after the other,
// those of programs that run outside of MPS meanwhile, so that who comes then waits for one of these at most.
struct ContextsWanted {
  bool for_trials = false;
  size_t waiting = 0;   // programs that have no worker
  size_t going_on = 0;  // programs outside of MPS that will move to a worker under it
};

inline constexpr size_t kMovesAtOnce = 1;

// Whether the contexts of those that go on have to wait for the others'.
inline bool others_come_first(const ContextsWanted& wanted) {
  return wanted.for_trials || (wanted.waiting != 0 && wanted.going_on != 0);
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
