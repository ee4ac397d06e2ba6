#pragma once

#include <sys/types.h>

#include <string>

namespace heddle::daemon {

// The contents of /proc/PID/NAME, which may have zeros between its words; empty where it cannot be read, as of a
// process that has gone.
std::string read_proc_file(pid_t pid, const char* name);

// Whether the process's first thread is stopped by a signal; whether all of them are. Not where it is traced.
bool is_stopped(pid_t pid);
bool all_threads_stopped(pid_t pid);

}  // namespace heddle::daemon
