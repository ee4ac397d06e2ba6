#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/ids.h"
#include "core/result.h"
#include "core/units.h"
#include "daemon/fair_queue.h"
#include "protocol/socket.h"

namespace heddle::daemon {

// What heddled notices of the world outside, in that order, with one exception: users take turns in what they say, and
// wait for a few other events at most. An event names its subject by id, because the subject may be gone when the event
// is handled. Messages are moved, never copied.

// A message came on the control socket: Hello, a command, or a program's request.
struct ClientSaid {
  uint64_t client;
  protocol::Packet packet;
};
struct ClientClosed {
  uint64_t client;
  Error why;
};
// The session's process has ended.
struct ProcessEnded {
  SessionId session;
};

// A worker of the device is ready to serve a task.
struct WorkerWarm {
  DeviceId device;
};
// After a restart of heddled: a bound worker is back.
struct WorkerReturned {
  WorkerId worker;
  protocol::WorkerReady ready;
};
// A worker sent SegmentFreed, TaskEnded, WorkerFault, or what it says of its lease.
struct WorkerSaid {
  WorkerId worker;
  protocol::Packet packet;
};
// A worker's connection has ended, and heddled did not end it. WorkerGone follows, on a GPU some time later.
struct WorkerLost {
  WorkerId worker;
};
// A worker that is terminated has nothing left on its device that others would wait for, though its process takes its
// time to end: MPS has taken it off; or in time slices what it left shares the GPU for its last 15 ms (HARDWARE.md,
// p8).
struct WorkerOffDevice {
  WorkerId worker;
};
// A worker's process has ended. `how`: "exit status 1", "signal 9 (Killed)". `certainly`: none of its work is left on
// the device. `crashed`: by itself, as far as that can be told (Ending).
struct WorkerGone {
  WorkerId worker;
  std::string how;
  bool certainly;
  bool crashed = false;
};
// Why all workers of a device are ended whose programs share their faults.
struct SharedFault {
  std::string text;                            // for other programs: names no other's kernels
  uint32_t cuda_error = 0;                     // for those whose work was under way; 0: as for the rest
  bool kernel = false;                         // a program's kernel has failed: somebody's at work there
  std::pair<SessionId, uint32_t> origin = {};  // the virtual device of which that is known first
  std::string own_text = {};                   // for that one
};
// All workers of the device are being ended; WorkerGone follows for each.
struct DeviceFaulted {
  DeviceId device;
  SharedFault fault;
};
// They are gone. Of a GPU under MPS, that is still being started anew.
struct DeviceLeft {
  DeviceId device;
};
// Others may be started.
struct DeviceCleared {
  DeviceId device;
};
// Programs are served apart, and it is time to look at what they do.
struct TrialDue {
  DeviceId device;
};

// A task has a device and no executor.
struct ExecutorWanted {
  DeviceId device;
};

// A segment's request for memory to a GPU's keeper, and the keeper's reply.
struct MemoryRequest {
  DeviceId device;
  std::string uuid;
  SessionId session;
  uint64_t segment, request;
  Bytes bytes;
  bool on_host = false;  // of this machine's memory: swap space, or for a task to run with
  // Of swap space that the keeper is to keep mapped; 0: a worker may get it.
  uint64_t mapping = 0;
};
struct MemoryAnswered {
  MemoryRequest request;
  Result<Fd> memory;
};
// A keeper has done the copy, or says why it will not, and nothing of it runs any more.
struct CopyAnswered {
  uint64_t copy;
  Status status;
};
// A GPU's keeper says what nobody uses of its memory, about once a second.
struct FreeMemoryReported {
  DeviceId device;
  Bytes free;
};
// Idle workers of the GPU have ended to make space for the request, which can be sent again.
struct ContextsFreed {
  MemoryRequest request;
};
// Programs have returned their idle memory, or do not answer: the tasks that were delayed for it go on (idle_memory.h).
struct IdleReturned {
  std::deque<TaskId> delayed;
};
// A segment of the session was removed, and a declaration of its program's waits for that.
struct SegmentRemoved {
  SessionId session;
};
// A device's leases are due for a look (leases.h).
struct LeasesDue {
  DeviceId device;
};
// The session has not given its lease back for too long, as `text` says.
struct LeaseOverdue {
  SessionId session;
  std::string text;
};
// A dispatch policy has ordered that the worker which serves the virtual device be terminated (terminations.h).
struct TerminationOrdered {
  SessionId session;
  uint32_t virtual_device;
};

// A task of the job could not be suspended, and so the job is not.
struct JobNotSuspended {
  JobId job;
};

// All copies of a task's memory to swap space are done, or all from there; or why they are not.
struct MemoryMoved {
  TaskId task;
  uint64_t attempt;  // which of the virtual device's it was
  Status status;
};
// The memory of a suspended job stays on its device.
struct JobNotSwapped {
  JobId job;
};

using Event =
    std::variant<ClientSaid, ClientClosed, ProcessEnded, WorkerWarm, WorkerReturned, WorkerSaid, WorkerLost,
                 WorkerOffDevice, WorkerGone, DeviceFaulted, DeviceLeft, DeviceCleared, TrialDue, ExecutorWanted,
                 MemoryAnswered, CopyAnswered, FreeMemoryReported, ContextsFreed, IdleReturned, SegmentRemoved,
                 LeasesDue, LeaseOverdue, TerminationOrdered, JobNotSuspended, MemoryMoved, JobNotSwapped>;

// Events until the next turn handles them (turn.h). Whoever notices something posts an event and returns, so that no
// component is called back in the middle of its own work.
class EventQueue {
 public:
  // Calls `turn_due` when a turn becomes due, once until that turn begins.
  explicit EventQueue(std::function<void()> turn_due) : turn_due_(std::move(turn_due)) {}

  void post(Event event) {
    events_.push_back(std::move(event));
    wake();
  }
  // What a user's program or command has said: users take turns.
  void post_of(uid_t user, Event event) {
    asked_.push(user, std::move(event));
    wake();
  }
  // The scheduler may have something to decide.
  void books_changed() {
    books_changed_ = true;
    wake();
  }

  // Returns whether a turn was due. What is posted from now on makes the next one due.
  bool begin_turn() { return std::exchange(due_, false); }
  std::optional<Event> next() {
    const bool askers_turn = since_asked_ >= kMostBetween && !asked_.empty();
    if (events_.empty() || askers_turn) {
      since_asked_ = 0;
      return asked_.pop();
    }
    ++since_asked_;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  // Leaves the events that are not handled yet to a turn in the next round of the loop. False if there are none.
  bool leave_rest() { return due_ = due_ || !events_.empty() || !asked_.empty(); }
  bool take_books_changed() { return std::exchange(books_changed_, false); }

 private:
  static constexpr int kMostBetween = 16;  // other events, while users wait

  void wake() {
    if (!std::exchange(due_, true)) turn_due_();
  }

  std::function<void()> turn_due_;
  std::deque<Event> events_;
  FairQueue<Event> asked_;
  int since_asked_ = 0;
  bool due_ = false, books_changed_ = false;
};

}  // namespace heddle::daemon
