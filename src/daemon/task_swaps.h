#pragma once

#include "daemon/tasks.h"

namespace heddle::daemon {

// The part of Tasks that has suspended tasks leave their devices with their memory, and come back; and that has tasks
// give way whose programs do nothing with their devices while others wait. Such a task is suspended as by a person, and
// goes on by itself once its program has work for a device. Without state of its own: what is to be done follows from
// the task's state (task_state.h), whether it gives way, and whether its job is suspended.
class TaskSwaps {
 public:
  explicit TaskSwaps(Tasks& tasks) : tasks_(tasks), shared_(tasks.shared_) {}

  // What suspended tasks have on devices goes to swap space where that lets somebody go who waits; idle ones are
  // suspended where that would. Once a turn. True: somebody is on his way.
  bool make_room();
  // Why the memory of the virtual device's task, suspended or not, could not go to swap space. kLimitExceeded,
  // kNotSupported.
  Status may_swap(Session& session, const VirtualDevice& device) const;
  void memory_moved(const MemoryMoved& moved);
  // The scheduler wants the task's memory off its device (policy::Decision::Kind::kLeave).
  void leave(Session& session, VirtualDevice& device, const std::string& reason);

  // The task gives its device up for a while.
  void give_way(Session& session, VirtualDevice& device, GivesWay why);
  // What of its memory was to be promoted stays on the host.
  void forget_promotion(Session& session, VirtualDevice& device);
  // What its job's being suspended, and its giving way, mean to a task beside its place on a device. True: something
  // was done.
  bool follow(Session& session, VirtualDevice& device, Job* job);
  // The task does not give way any more; `obstacle`: what keeps it from that. What follows is still to be done.
  void stay(Session& session, VirtualDevice& device, const std::string& obstacle = "");
  // After a restart of heddled: the task is swapped out.
  void readopt(Session& session, VirtualDevice& device);

 private:
  // Of all tasks, those that are suspended or are being so.
  struct Leaving {
    std::vector<TaskId> could;  // suspended, and there is swap space
    std::vector<TaskId> idle;   // suspended only because they give way
    bool coming = false;        // others give way, and are not suspended yet
    bool copying = false;
  };

  // From the first copy of the latest attempt to now; the memory to copy to was made before it.
  std::string copies_took(const VirtualDevice& device) const;
  bool wants_back(VirtualDevice& device) const;
  Leaving look_who_leaves();
  bool make_room_of_idle(std::vector<TaskId> could_leave);
  void swap_out(Session& session, VirtualDevice& device, Job* job);
  void begin_to_leave(Session& session, VirtualDevice& device);
  void swapped_out(Session& session, VirtualDevice& device);
  void come_back(Session& session, VirtualDevice& device);

  Tasks& tasks_;
  Shared& shared_;
};

}  // namespace heddle::daemon
