#pragma once

#include "daemon/tasks.h"

namespace heddle::daemon {

// The part of Tasks that has suspended tasks leave their devices with their memory, and come back. Without state of its
// own: what is to be done follows from the task's state and the job's (task_state.h).
class TaskSwaps {
 public:
  explicit TaskSwaps(Tasks& tasks) : tasks_(tasks), shared_(tasks.shared_) {}

  // What suspended jobs' tasks have on devices goes to swap space where that lets somebody go who waits. Once a turn.
  void make_room();
  // Why the memory of the virtual device's task, suspended or not, could not go to swap space. kLimitExceeded,
  // kNotSupported.
  Status may_swap(Session& session, const VirtualDevice& device) const;
  void memory_moved(const MemoryMoved& moved);

  // What its job's being suspended or not means to a task beside its place on a device. True: something was done.
  bool follow(Session& session, VirtualDevice& device, Job* job);
  // After a restart of heddled: the task is swapped out.
  void readopt(Session& session, VirtualDevice& device);

 private:
  void swap_out(Session& session, VirtualDevice& device, Job& job);
  void swapped_out(Session& session, VirtualDevice& device);
  void come_back(Session& session, VirtualDevice& device);

  Tasks& tasks_;
  Shared& shared_;
};

}  // namespace heddle::daemon
