#pragma once

#include <atomic>

#include "core/units.h"

namespace heddle {

// For how long a thread of this process may look for what it waits for before it sleeps.
//
// A wake-up costs 5 us on bare metal and 35 to 60 us on a virtual machine, so a program that waits in each of its steps
// pays for every sleep. A thread that looks pays with a processor instead, which costs nobody anything while there are
// processors to spare. Whether there are, the process finds out by looking: a thread that looks, runs for all the time
// that it looks, unless somebody else wants its processor. Then the kernel takes it away, and the thread sees a gap
// between two looks and one more involuntary context switch. From then on the process sleeps at once, for a while that
// doubles with each further interruption and halves with each wait that was not interrupted. So all processes of the
// machine count, heddle's and others', as do quotas of a control group; nothing is shared that a tenant could falsify
// or that a death could leave wrong.
//
// Thread-safe: words that are read and written one by one. A lost update makes a pause longer or shorter, once.
class SpareProcessors {
 public:
  // Looking costs at least so much before it is stopped: a wait that is over sooner never sleeps.
  static constexpr Duration kShort = std::chrono::microseconds(5);
  // A thread that has looked for so long pays less than a hundredth of its wait for a wake-up of 50 us.
  static constexpr Duration kLong = std::chrono::milliseconds(5);
  // A gap between two looks that is longer than interrupts take.
  static constexpr Duration kGap = std::chrono::microseconds(200);
  static constexpr Duration kShortestPause = std::chrono::milliseconds(10), kLongestPause = std::chrono::seconds(1);
  // With fewer processors, threads that look take them from those whose work they wait for.
  static constexpr unsigned kFewest = 4;

  explicit SpareProcessors(unsigned processors) : enough_(processors >= kFewest) {}

  bool are_there(TimePoint now) const {
    return enough_ && now.time_since_epoch().count() >= sleeps_until_.load(std::memory_order_relaxed);
  }
  // How long a thread may look that begins to wait `now`.
  Duration may_look(TimePoint now) const { return are_there(now) ? kLong : kShort; }
  // A thread that looked lost its processor to another one.
  void interrupted(TimePoint now);
  // A thread that looked found what it waited for, undisturbed.
  void undisturbed();

 private:
  const bool enough_;
  std::atomic<int64_t> sleeps_until_{0};  // nanoseconds of CLOCK_MONOTONIC
  std::atomic<int64_t> pause_{kShortestPause.count()};
};

// This process's.
SpareProcessors& spare_processors();

// How a program wants its threads to wait (cudaDeviceSchedule*).
enum class WaitMode {
  kAuto,   // looks while there are processors to spare
  kSpin,   // looks, whoever else wants the processor
  kYield,  // looks, and lets whoever wants the processor have it in between
  kBlock,  // sleeps at once
};

// Looks for something in turns, and says when to stop: the loop that every thread runs which looks instead of sleeping.
//   Looker looker(longest);
//   while (looker.goes_on()) if (it is there) return looker.found();
class Looker {
 public:
  // `longest`: nothing is looked for longer, whatever processors there are; nor for longer than kLong.
  explicit Looker(Duration longest, WaitMode mode = WaitMode::kAuto);
  // Pauses for some nanoseconds. False when the time is over, or when another thread wants the processor.
  bool goes_on();
  // What was looked for is there.
  void found() const;

 private:
  const WaitMode mode_;
  TimePoint began_, at_, end_;
  uint32_t looks_ = 0;
};

}  // namespace heddle
