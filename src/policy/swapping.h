#pragma once

#include <vector>

#include "policy/scheduler.h"

namespace heddle::policy {

// The part of a scheduler that is about tasks whose memory leaves their device, and comes back to any of the model. Not
// under a memory-oblivious policy. Without state of its own.
class Swapping {
 public:
  explicit Swapping(Scheduler& scheduler) : scheduler_(scheduler) {}

  // The running task's memory has left its device. It holds nothing there any more; in its job's budget it stays. What
  // it had asked for besides waits until it runs again.
  void swapped_out(TaskId task, TimePoint now);
  // It wants a device again, with the memory that it had, and with what it has asked for besides, as far as a device
  // could ever hold all of it: so it never holds the one and waits for the other. It stands in the line from now on, or
  // with the age of what it has asked for, and is granted or refused with RequestKind::kResume; behind a grant, what
  // was asked for besides is granted as extensions. Withdrawn, it wants no device.
  void resume_requested(TaskId task, TimePoint now);
  void resume_withdrawn(TaskId task, TimePoint now);
  // The task cannot leave its device, for that reason (Decision::Kind::kLeave).
  void stays(TaskId task, const std::string& why, TimePoint now);
  // After a restart: one that is swapped out is put back. kNotFound, kNotSupported, and what task_arrived refuses.
  Status adopt(const TaskRequest& request, TimePoint now);

  // Which of these running tasks, if they were swapped out, would let a request go that waits since `asked_by` or
  // longer: of the oldest that they can help, the fewest bytes on one device. Empty where nobody waits, or none would
  // do. Changes nothing.
  static std::vector<TaskId> who_makes_room(const Scheduler& scheduler, const std::vector<TaskId>& could_leave,
                                            TimePoint asked_by);
  // Whether any request waits for a device, and not for programs of its own user.
  static bool anybody_waits(const Scheduler& scheduler);

 private:
  friend class Scheduler;

  // Deadlocks: whether tasks of the session are on their way out; its running tasks are to leave, unless they cannot.
  bool is_leaving(SessionId session) const;
  bool leave(SessionId session, const std::string& reason);
  // The task was granted a device again: what was asked for besides is decided with it.
  void resumed(TaskId task, const Decision& granted);
  size_t fit_together(const Scheduler::Task& task, TaskId id) const;
  void keep_extensions(Scheduler::Task& task);

  Scheduler& scheduler_;
};

// Whether a task that has come back `stayed` ago may leave its device again because it does nothing: after five times
// as long as it must be `idle` for that, and ten times as long as its memory was `copied`.
bool may_leave_again(Duration stayed, Duration copied, Duration idle);

}  // namespace heddle::policy
