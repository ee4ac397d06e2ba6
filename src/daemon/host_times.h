#pragma once

#include "daemon/tasks.h"

namespace heddle::daemon {

// Tells a scheduler whose placement policy learns how much programs compute themselves: the user and system time of
// their processes, as the kernel counts it, from when they greet. So a program can compute more than it needs to, but
// not seem to have. What its children and its workers compute is not its own.
//
// It is looked at when a task ends, when the program hangs up, once a second, and when the session ends; of a process
// that has ended nothing can be learned any more, so that what it did last may be missing.
class HostTimes {
 public:
  HostTimes(Shared& shared, Tasks& tasks) : shared_(shared), tasks_(tasks) {}

  // The session's process is known, and was never looked at by this heddled.
  void began(Session& session);
  void look(Session& session) { look(tasks_, session); }
  static void look(Tasks& tasks, Session& session);

 private:
  void look_at_all();

  Shared& shared_;
  Tasks& tasks_;
  EventLoop::Timer next_;
};

}  // namespace heddle::daemon
