#pragma once

#include <deque>
#include <set>

#include "daemon/executor.h"
#include "daemon/shared.h"
#include "policy/scheduler.h"

namespace heddle::daemon {

// Memory that programs have freed and keep until somebody waits (protocol::IdleTable).
//
// While nobody waits heddled hears nothing of it. A request that would wait or be refused is kept from the scheduler
// until those who have something idle have given it back, so that the scheduler never sees memory that nobody uses; and
// while anybody waits, nobody keeps any.
class IdleMemory {
 public:
  IdleMemory(Shared& shared, const Executor& executor) : shared_(shared), executor_(executor) {}

  // Asks for what is idle, for a request of this session's. Whether somebody has something, and is to be waited for.
  bool reclaim_for(const Session& waiting);
  // The task's request, or its next extension, is made when that is back, as far as it comes (IdleReturned).
  void delay(TaskId task) { delayed_.push_back(task); }
  // An IdleReturned is handled: its tasks go to the scheduler now.
  void resumed() { --resuming_; }
  // The executor has given back what it had idle, or never will.
  void returned(ExecutorId executor);
  // Told behind every decision. Who went idle before it was told that somebody waits is asked.
  void say_who_may_idle(const policy::Scheduler& scheduler);

 private:
  bool reclaim(const Session& session, VirtualDevice& device);
  void stop_waiting();
  void resume_delayed();

  Shared& shared_;
  const Executor& executor_;
  std::deque<TaskId> delayed_;
  uint32_t resuming_ = 0;             // IdleReturned events that are not handled yet
  std::set<ExecutorId> awaited_;      // asked to give back what is idle
  std::set<ExecutorId> unanswering_;  // the same, for too long
  EventLoop::Timer patience_;
};

}  // namespace heddle::daemon
