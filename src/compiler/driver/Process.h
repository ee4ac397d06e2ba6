#pragma once

// Children of the driver.

#include "driver/Options.h"

namespace heddle::compiler {

// Runs the program, passes on what it writes to stderr, and keeps the end of that in `Errors`. Returns the exit status
// as a shell tells it: 128 and more for a signal.
int runWatched(const std::string &Program, const Arguments &Line, std::string &Errors);

// Runs the program without a word from it.
int runQuietly(const std::string &Program, const Arguments &Line);

} // namespace heddle::compiler
