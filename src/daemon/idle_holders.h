#pragma once

#include <vector>

#include "daemon/shared.h"

namespace heddle::daemon {

// Tasks that have a device and do nothing with it: a notebook, a stopped process, a program that waits for another.
//
// Nobody tells heddled that a program does nothing. It looks, once in `[swap] idle` and only while somebody waits, how
// far each ring is: a ring that is quiet at two looks, behind the same record, was quiet all the time in between.
class IdleHolders {
 public:
  explicit IdleHolders(Shared& shared) : shared_(shared) {}

  // Whether it is time for a look. The next one comes by itself, while somebody waits.
  bool due(bool somebody_waits);
  // Tasks that could give way: all quiet for `[swap] idle`, and such that can go on in another worker.
  std::vector<TaskId> look();

 private:
  bool is_idle(VirtualDevice& device);

  Shared& shared_;
  TimePoint next_look_{};
  EventLoop::Timer alarm_;
};

// Whether a task that has come back, or was to give way and stayed, was there for long enough (policy/swapping.h).
bool may_leave_again(const Task& task, Duration idle, TimePoint now);
// Whether the program has appended records that are not done, or waits for memory: its task needs a device.
bool has_work(const VirtualDevice& device);

}  // namespace heddle::daemon
