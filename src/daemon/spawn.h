#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "core/fd.h"

namespace heddle::daemon {

struct SpawnOptions {
  std::string program;                        // a path
  std::vector<std::string> arguments;         // without the program's own name
  std::vector<int> descriptors;               // the child gets them as 3, 4, ... and no others but 0, 1, 2
  int input = -1;                             // the child's 0; -1: ours, or nothing where it is apart
  int output = -1;                            // the child's 1 and 2; -1: ours
  bool apart = false;                         // own process group, an environment of only what is harmless
  std::vector<std::string> environment = {};  // "NAME=value", beside that
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;
};

// Starts a child with no signal blocked or ignored. The caller reaps it.
Result<Child> spawn(const SpawnOptions& options);

struct Ending {
  std::string how;       // "exit status 1", "signal 9 (Killed)"
  bool crashed = false;  // it exited, or was ended by a signal that a process's own code brings about
};
// How a child of ours ended; reaps it. Empty where it is no child of ours or has not ended.
Ending ending_of(const Fd& pidfd);
std::string reap(const Fd& pidfd);  // ending_of().how

// Whether the process behind a pidfd has ended.
bool has_ended(const Fd& pidfd);
// Nothing where it has ended already.
void kill_process(const Fd& pidfd, int signal);

}  // namespace heddle::daemon
