#pragma once

#include <chrono>
#include <cstdint>

#include "core/units.h"

namespace heddle::daemon {

// Whether a program's workers die so often at one place of its log that the next one is not worth starting.
//
// What is to be caught is work that kills its workers: another would die of it, too, for ever. What is not: workers
// that somebody kills while a long kernel runs, during which the log's cut stays where it is. No time tells the two
// apart: a kernel may kill its worker after a minute, each time, and an administrator may kill two workers within a
// second. How they ended does. A worker that crashed (a signal that its own code brings about, or an exit that nobody
// asked for) with work under way, and the next one in the same work, were killed by that work. With nothing under way
// it may be chance, hours apart; soon after the last death it was what every worker does there, taking the task over.
//
// A worker that was killed is no sign against its program, whose kernel is run again as often as it takes. But when
// memory runs out the system kills it in the same way, and work that makes its worker grow would bring it to that again
// and again: kMostKills quick ones in a row are too many. A worker that is no child of this heddled's counts as killed:
// nobody knows how it ended.
struct DeathsInPlace {
  static constexpr uint32_t kMostCrashes = 2, kMostKills = 5;
  static constexpr Duration kQuick = std::chrono::seconds(10);  // after the last one

  uint64_t completed = 0;  // the place
  uint32_t crashes = 0;
  bool crashed_at_work = false;  // the last that crashed
  uint32_t in_a_row = 0;         // of any kind, each a quick one
  TimePoint last{};

  struct Death {
    uint64_t completed = 0;
    bool crashed = false, at_work = false;
    TimePoint when{};
  };
  void add(const Death& death) {
    if (death.completed != completed || in_a_row == 0) *this = {death.completed};
    const bool quick = in_a_row > 0 && death.when - last < kQuick;
    in_a_row = quick ? in_a_row + 1 : 1;
    if (death.crashed) {
      crashes = quick || (death.at_work && crashed_at_work) ? crashes + 1 : 1;
      crashed_at_work = death.at_work;
    }
    last = death.when;
  }
  bool too_many() const { return crashes >= kMostCrashes || in_a_row >= kMostKills; }
};

}  // namespace heddle::daemon
