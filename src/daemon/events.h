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
#include "protocol/socket.h"

namespace heddle::daemon {

// What happens outside of the books, in the order in which heddled noticed it. Each names what it is about; that may be
// gone when its turn comes. Nothing large is copied: messages travel as they were received.

// From the control socket: Hello, a command, what a program asks for.
struct ClientSaid {
  uint64_t client;
  protocol::Packet packet;
};
struct ClientClosed {
  uint64_t client;
  Error why;
};
// The session's process.
struct ProcessEnded {
  SessionId session;
};

// A worker can serve somebody.
struct WorkerWarm {
  DeviceId device;
};
// After a restart of heddled: a bound worker is back.
struct WorkerReturned {
  WorkerId worker;
  protocol::WorkerReady ready;
};
// SegmentFreed, TaskEnded, WorkerFault or Usage.
struct WorkerSaid {
  WorkerId worker;
  protocol::Packet packet;
};
// Its connection has ended, not by our doing; WorkerGone follows, on a GPU some time later.
struct WorkerLost {
  WorkerId worker;
};
// Its process has ended. `how`: "exit status 1", "signal 9 (Killed)". `certainly`: nothing of it is left on its device
// either.
struct WorkerGone {
  WorkerId worker;
  std::string how;
  bool certainly;
};
// Why all clients of a GPU under MPS are lost.
struct MpsFault {
  std::string text;           // for their programs: names no other's kernels
  uint32_t cuda_error = 0;    // for those whose work was under way; 0: as for the rest
  SessionId origin = {};      // whose fault it was, where that is known
  std::string own_text = {};  // for that one; empty: it is told when its worker is gone
};
// The GPU's workers are being ended, all of them; WorkerGone follows for each.
struct MpsLost {
  DeviceId device;
  MpsFault fault;
};

// A task has a device, and nobody serves it yet.
struct ExecutorWanted {
  DeviceId device;
};

// Memory that was asked of a GPU's keeper for a segment, if that still waits for it.
struct MemoryRequest {
  DeviceId device;
  std::string uuid;
  SessionId session;
  uint64_t segment, request;
  Bytes bytes;
};
struct MemoryAnswered {
  MemoryRequest request;
  Result<Fd> memory;
};
// Workers of its GPU that served nobody have ended for it: it can be asked for again.
struct RoomMade {
  MemoryRequest request;
};
// What programs had idle is back, as far as it comes, for the tasks that waited for it (idle_memory.h).
struct IdleReturned {
  std::deque<TaskId> delayed;
};
// A session's segment went, and its program has declared something that waited for that.
struct SegmentRemoved {
  SessionId session;
};

using Event = std::variant<ClientSaid, ClientClosed, ProcessEnded, WorkerWarm, WorkerReturned, WorkerSaid, WorkerLost,
                           WorkerGone, MpsLost, ExecutorWanted, MemoryAnswered, RoomMade, IdleReturned, SegmentRemoved>;

// Events until their turn (turn.h). Whoever notices something posts it and goes on: nobody is called back in the middle
// of what he is doing.
class EventQueue {
 public:
  // `turn_due` is called when there is something to do and was nothing before.
  explicit EventQueue(std::function<void()> turn_due) : turn_due_(std::move(turn_due)) {}

  void post(Event event) {
    events_.push_back(std::move(event));
    wake();
  }
  // Something has changed that the scheduler may decide upon.
  void books_changed() {
    books_changed_ = true;
    wake();
  }

  // The turn is taken: what comes from now on is due again. False where nothing was.
  bool begin_turn() { return std::exchange(due_, false); }
  std::optional<Event> next() {
    if (events_.empty()) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    return event;
  }
  bool take_books_changed() { return std::exchange(books_changed_, false); }

 private:
  void wake() {
    if (!std::exchange(due_, true)) turn_due_();
  }

  std::function<void()> turn_due_;
  std::deque<Event> events_;
  bool due_ = false, books_changed_ = false;
};

}  // namespace heddle::daemon
