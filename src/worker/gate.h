#pragma once

namespace heddle::worker {

// Whether the issuer may take records from the ring: the one place that says so. Whether what it takes may go to the
// device the lease says (lease.h). Nobody but the issuer's thread asks.
//
//   no task --begin_task--> waits for memory --memory_ready--> open --close--> closed
//      ^------------------------------- end_task, from any of them -----------------/
class Gate {
 public:
  // A task is served here from now on; heddled has not sent its memory yet.
  void begin_task() { state_ = State::kWaitsForMemory; }
  // All memory of the grant is here. Said of a task that has ended meanwhile it means nothing.
  void memory_ready() {
    if (state_ == State::kWaitsForMemory) state_ = State::kOpen;
  }
  // What follows in the ring is not this task's, or its records cannot be told apart any more.
  void close() {
    if (serving()) state_ = State::kClosed;
  }
  // Until heddled names the next task, which may have been given to another device, the ring is left alone.
  void end_task() { state_ = State::kNoTask; }

  bool open() const { return state_ == State::kOpen; }
  bool serving() const { return state_ != State::kNoTask; }

 private:
  enum class State { kNoTask, kWaitsForMemory, kOpen, kClosed };
  State state_ = State::kWaitsForMemory;  // a worker is bound to a session for a task
};

}  // namespace heddle::worker
