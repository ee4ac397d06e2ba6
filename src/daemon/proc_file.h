#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/fd.h"
#include "core/units.h"

namespace heddle::daemon {

// The contents of /proc/PID/NAME, which may have zeros between its words; empty where it cannot be read, as of a
// process that has gone.
std::string read_proc_file(pid_t pid, const char* name);

// The user and system time of all threads of the process so far, which `process`, its pidfd, says is there still.
std::optional<Duration> process_time(pid_t pid, const Fd& process);

// Whether the process's first thread is stopped by a signal; whether all of them are. Not where it is traced.
bool is_stopped(pid_t pid);
bool all_threads_stopped(pid_t pid);

}  // namespace heddle::daemon
