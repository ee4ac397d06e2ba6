#pragma once

#include <set>

#include "daemon/shared.h"

namespace heddle::daemon {

// Workers that somebody has stopped (SIGSTOP, SIGTSTP). A stopped worker keeps what it has of a software device, its
// lock even, and its neighbours wait; on a GPU it keeps memory that others wait for. So it is continued: whoever wants
// a program to pause stops the program. heddled itself stops some, for less than a second (held_back.h). One that is
// traced stays stopped, for the debugger's sake.
class StoppedWorkers {
 public:
  explicit StoppedWorkers(Shared& shared) : shared_(shared) {}

  // A worker serves somebody: looks at all of them now and then for as long as one does.
  void watch();

 private:
  void look();

  Shared& shared_;
  EventLoop::Timer timer_;
  bool watching_ = false;
  std::set<WorkerId> stopped_;  // at the last look
};

}  // namespace heddle::daemon
