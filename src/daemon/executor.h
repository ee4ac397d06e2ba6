#pragma once

#include <optional>
#include <string>

#include "daemon/registry.h"

namespace heddle::daemon {

using ExecutorId = Id<struct ExecutorTag>;  // who serves a virtual device; never reused within a vault's life

// Runs tasks that the scheduler has placed: today in worker processes of this machine (worker_executor.h). Other
// implementations may run them elsewhere. An implementation does the tasks' device work and reports to ExecutorEvents;
// it never sees the scheduler.
//
// One executor serves one virtual device at a time, and may stay for the virtual device's next task.
class Executor {
 public:
  virtual ~Executor() = default;

  // A session was opened, which will probably have a task soon.
  virtual void session_opened() = 0;
  // Looks for an executor on the task's device. Does not call back: ExecutorWanted is posted, and a later turn pairs
  // them unless the task was cancelled by then.
  virtual void find(Session& session, VirtualDevice& device) = 0;
  // Records that the executor which was found serves the task, in the vault too.
  virtual void engage(Session& session, VirtualDevice& device) = 0;
  // Sends the executor everything that the task has: modules, pinned memory, device memory. Lets it proceed unless some
  // memory is still on its way.
  virtual void hand_over(Session& session, VirtualDevice& device) = 0;
  // Has the executor that serves the virtual device give its task up: executor_lost follows once it has ended, or
  // executor_stays. Nothing while it is not back after a restart of heddled: it is told then.
  virtual void suspend(const VirtualDevice& device) = 0;
  // Ends the executor that serves the virtual device; executor_gone follows. Does nothing if there is none.
  virtual void stop(VirtualDevice& device) = 0;
  // Ends the executor that stayed for the virtual device's next task, if one did.
  virtual void retire_kept(const Session& session, const VirtualDevice& device) = 0;

  // Who serves the virtual device; none where nobody does.
  virtual std::optional<ExecutorId> serving(const VirtualDevice& device) const = 0;
  // The process of this machine that serves the virtual device, for people to see; 0 where there is none.
  virtual pid_t process(const VirtualDevice& device) const = 0;
  // Whether single segments may be sent: only after hand_over, so that the executor never proceeds with a part.
  virtual bool takes_memory(const VirtualDevice& device) const = 0;
  virtual void map_segment(VirtualDevice& device, Segment& segment) = 0;
  // Lets the executor proceed, unless some memory is still on its way.
  virtual void proceed(const VirtualDevice& device) = 0;
  // Maps a pinned host segment, or unmaps it when the program has released it.
  virtual void map_host(Session& session, const Segment& segment, bool release) = 0;
  virtual void send_module(Session& session, const Module& module) = 0;
};

// What executors report. References are valid during the call.
class ExecutorEvents {
 public:
  virtual ~ExecutorEvents() = default;

  // heddled was restarted, and the executor that served the task still does.
  virtual void executor_rejoined(Session& session, VirtualDevice& device) = 0;
  // The executor has reached the program's free: nothing uses the segment's memory any more.
  virtual void segment_freed(Session& session, VirtualDevice& device, uint64_t number) = 0;
  // The task has ended, and no executor serves the virtual device now. `unmapped`: the executor has unmapped all of the
  // task's memory.
  virtual void finished(Session& session, VirtualDevice& device, bool unmapped) = 0;
  // The executor that served the virtual device has ended. `why`: the error's text, if heddled did not end it.
  // `certainly`: none of its work is left on the device. Returns whether the session was ending and now holds nothing.
  virtual bool executor_gone(Session& session, VirtualDevice& device, const std::string& why, bool certainly) = 0;
  // The executor that served the virtual device has ended with nothing of the task under way: another on the same
  // device can go on in its place.
  virtual void executor_lost(Session& session, VirtualDevice& device) = 0;
  // It was to give the task up, and cannot, for what lasting_obstacle says (resumable.h).
  virtual void executor_stays(Session& session, VirtualDevice& device) = 0;
  // The executor has returned its idle memory, as it was asked to, or has ended.
  virtual void idle_returned(ExecutorId executor) = 0;
  // Ends the session's device work with an error that its program sees; the session stays until its process ends.
  virtual void fail_session(Session& session, uint32_t cuda_error, const std::string& text) = 0;
};

}  // namespace heddle::daemon
