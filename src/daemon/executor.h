#pragma once

#include <string>

#include "daemon/registry.h"

namespace heddle::daemon {

// Who serves tasks, once they have a device: today worker processes of this machine (worker_executor.h). What is behind
// this door has the device work done and tells ExecutorEvents; it knows nothing of the scheduler.
//
// An executor serves one virtual device; it is found once for a task, and goes on to the virtual device's next task
// where it can.
class Executor {
 public:
  virtual ~Executor() = default;

  // A session is there, and may soon have a task.
  virtual void session_opened() = 0;
  // The task has a device and wants to be served there: it is paired with somebody later, unless it is cancelled.
  virtual void find(Session& session, VirtualDevice& device) = 0;
  // The one that was found serves the virtual device's task from now on, for a successor of heddled's to know too.
  virtual void engage(Session& session, VirtualDevice& device) = 0;
  // Gives it all that the task needs and that is there; it goes on when nothing is under way any more.
  virtual void hand_over(Session& session, VirtualDevice& device) = 0;
  // Ends what serves the virtual device; executor_gone follows. Nothing where nobody does.
  virtual void stop(VirtualDevice& device) = 0;
  // What is kept for the virtual device's next task is of no use any more.
  virtual void forget(const Session& session, const VirtualDevice& device) = 0;

  // Whether it can be given memory one by one: not before it was handed over what there was.
  virtual bool takes_memory(const VirtualDevice& device) const = 0;
  virtual void give_segment(VirtualDevice& device, Segment& segment) = 0;
  // It may go on, unless memory is under way still.
  virtual void proceed(const VirtualDevice& device) = 0;
  // A pinned host segment that has memory already, or that the program has given back.
  virtual void map_host(Session& session, const Segment& segment, bool release) = 0;
  virtual void send_module(Session& session, const Module& module) = 0;
};

// What comes of executors. References are valid during the call.
class ExecutorEvents {
 public:
  virtual ~ExecutorEvents() = default;

  // After a restart of heddled: the one that served the task still does.
  virtual void executor_rejoined(Session& session, VirtualDevice& device) = 0;
  // The program's free has come to its turn: nothing touches the segment's memory any more.
  virtual void segment_freed(Session& session, VirtualDevice& device, uint64_t number) = 0;
  // The task's work is done, and nobody serves the virtual device now. `unmapped`: its memory is mapped nowhere.
  virtual void finished(Session& session, VirtualDevice& device, bool unmapped) = 0;
  // What serves the virtual device is no more. `why`: for the program, where it did not expect that. `certainly`:
  // nothing of it is left on the device either. Whether the session was ending and holds nothing any more.
  virtual bool executor_gone(Session& session, VirtualDevice& device, const std::string& why, bool certainly) = 0;
  // A worker that was asked for idle memory has answered, or never will.
  virtual void idle_returned(WorkerId worker) = 0;
  // The session's device work is over, for its program to see; it stays until its process ends.
  virtual void fail_session(Session& session, uint32_t cuda_error, const std::string& text) = 0;
};

}  // namespace heddle::daemon
