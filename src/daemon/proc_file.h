#pragma once

#include <sys/types.h>

#include <string>

namespace heddle::daemon {

// The contents of /proc/PID/NAME, which may have zeros between its words; empty where it cannot be read, as of a
// process that has gone.
std::string read_proc_file(pid_t pid, const char* name);

}  // namespace heddle::daemon
