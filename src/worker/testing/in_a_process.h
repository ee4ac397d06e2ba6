#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace heddle::worker::testing {

// Runs `body` in a process of its own, which it may confine; its result is the exit status. -1: a signal ended it.
template <class Body>
int in_a_process(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace heddle::worker::testing
