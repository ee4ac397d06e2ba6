#pragma once

#include <iosfwd>
#include <string>

#include "core/result.h"
#include "simulator/replay_outcome.h"

namespace heddle::simulator {

// Tells fresh schedulers and dispatch policies all that the log has, at its times, and compares what they decide with
// what it says. kInvalidArgument: a line is none of an input log, or of one of another format; the error names it by
// `name` and its number. A log that somebody has edited may break the scheduler's rules (a task id is used once), which
// ends the process.
Result<ReplayOutcome> replay(std::istream& log, const std::string& name);

}  // namespace heddle::simulator
