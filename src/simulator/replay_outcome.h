#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.h"

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
  Bytes full_at;                        // the log ended at this limit, at least once; 0: it did not
  bool cut = false;                     // the log ends in the middle of an answer or of a line
};

}  // namespace heddle::simulator
