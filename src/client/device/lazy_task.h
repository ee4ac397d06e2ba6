#pragma once

#include <vector>

#include "client/link/arena.h"
#include "core/result.h"
#include "protocol/messages.h"

// Tasks without a compiler: when what is declared to heddled.
//
//            first launch, full ring or bulk area, copy to the host, synchronize
//   quiet ───────────────────────────────────────────────────────────────▶ begun
//     ▲   every live segment is declared, then the task is announced         │  new segments are declared (kNeed)
//     └──────────────────────────────────────────────────────────────────────┘  before the record that follows them
//            the last segment is freed: kTaskEnd
//
// A begun task rests while its program holds no memory and what it freed stays mapped (idle_memory.h). It goes on with
// the next record; or its worker has ended it by then, and what the program has allocated meanwhile, in memory that
// heddled knows from that task, goes with the next one.
//
// A segment that is freed before its task began is forgotten, unless records that wait in the ring touch it: then it
// is declared with the task all the same, and freed at once behind them.
namespace heddle::client {

// Where a task's words go: to heddled and into the ring. A DeviceTask, or a test.
class TaskVoice {
 public:
  virtual ~TaskVoice() = default;
  // Waits until heddled has taken note that the task before ended: what is declared then belongs to the next one.
  virtual Status await_end() = 0;
  // Declares the segment and returns the number that it got. With `answer`, waits for the memory.
  virtual Result<uint64_t> declare(const Segment& segment, bool answer) = 0;
  virtual Status begin(uint64_t serial, const protocol::ComputeNeed& need) = 0;
  virtual Status grow(const protocol::ComputeNeed& need) = 0;
  // Appends a record of the stream-less kinds (kNeed, kFree, kTaskEnd) and returns its sequence.
  virtual Result<uint64_t> append(protocol::RecordType type, uint64_t a) = 0;
  // heddled has forgotten the segment: it was declared for a task that did not come about.
  virtual void withdrawn(const Segment& segment) = 0;
  // The segment's last record is `sequence`; nobody here will use it again.
  virtual void retire(Segment* segment, uint64_t sequence) = 0;
};

// Not thread-safe: under its device's lock.
class LazyTask {
 public:
  LazyTask(TaskVoice& voice, uint32_t virtual_device) : voice_(voice) { need_.virtual_device = virtual_device; }

  bool begun() const { return begun_; }
  uint64_t serial() const { return serial_; }
  // Whether there is memory that was freed and goes back only when the task has begun.
  bool waits_to_free() const { return !ghosts_.empty(); }

  // A new segment; declared at once where the policy grants at cudaMalloc.
  Status created(Segment* segment, bool grant_now);
  // Its last buffer is freed. `touched`: records that are not yet announced may name it. `grant_now` as for created().
  Status emptied(Segment* segment, bool touched, bool grant_now = false);
  // The device holds no memory any more. A worker that keeps state the program may come back to stays.
  Status all_freed();
  // Instead of all_freed(): from now on the worker may end the task. Then one of the others is called before anything
  // else. `live` segments were allocated again and stay; `ghosts` were not.
  void rest() { resting_ = true; }
  bool resting() const { return resting_; }
  void resume() { resting_ = false; }
  void was_ended(const std::vector<Segment*>& live, const std::vector<Segment*>& ghosts);

  // Before a record is appended: segments that came since are declared. Costs one compare when there are none.
  Status before_record() { return begun_ && !waiting_.empty() ? declare_waiting() : Status{}; }
  // Announces the task with what is known by now.
  Status begin();
  // The same in two steps, for a task that heddled may decline: what there is is declared; then either is called.
  Result<protocol::BeginTask> offer();
  Status accepted();
  void declined();
  // What launches of a task that did not come about needed.
  void forget_need();
  // A launch of this shape follows; heddled hears of it when it needs more of the device than any before.
  Status launch(uint64_t blocks, uint32_t threads, uint32_t registers, uint32_t shared_bytes);

 private:
  Status declare_waiting();
  Status previous_over();

  TaskVoice& voice_;
  bool begun_ = false;
  bool resting_ = false;
  bool ending_ = false;  // kTaskEnd is in the ring, and heddled may not know yet
  uint64_t serial_ = 0;
  uint64_t warps_ = 0;  // of need_
  protocol::ComputeNeed need_;
  std::vector<Segment*> waiting_;  // not declared yet, or for a task that its worker has ended
  std::vector<Segment*> ghosts_;   // freed before the task began, but touched
};

}  // namespace heddle::client
