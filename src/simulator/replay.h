#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/result.h"

namespace heddle::simulator {

// What became of an input log (core/input_log.h) whose inputs were told to fresh schedulers and dispatch policies.
struct ReplayOutcome {
  struct Difference {
    uint64_t line = 0;     // of the log
    std::string logged;    // empty: nothing, where something was decided
    std::string replayed;  // likewise
  };
  uint64_t schedulers = 0, dispatches = 0;  // that were made
  uint64_t inputs = 0;                      // without these
  uint64_t answers = 0;                     // that the log has
  uint64_t different = 0;
  std::vector<Difference> differences;  // the first ten
  bool cut = false;                     // the log ends in the middle of an answer or of a line
};

// Tells them all that the log has, at its times, and compares what they decide with what it says. kInvalidArgument: a
// line is none of an input log; the error names it by `name` and its number. A log that somebody has edited may break
// the scheduler's rules (a task id is used once), which ends the process.
Result<ReplayOutcome> replay(std::istream& log, const std::string& name);

}  // namespace heddle::simulator
