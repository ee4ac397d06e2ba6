#pragma once

#include "client/device/device_segments.h"
#include "client/device/lazy_task.h"
#include "client/device/ring_port.h"

// The task of one ring, and what of the ring waits for it: heddled gives the ring a worker when the task has begun, and
// nothing in it is done before.
namespace heddle::client {

class DeviceTask : private TaskVoice {
 public:
  using Lock = RingPort::Lock;
  enum class Begin { kNo, kYes };

  DeviceTask(RingPort& ring, DeviceSegments& segments) : ring_(ring), segments_(segments), task_(*this, ring.index()) {}

  // --- records: under the lock ---
  // Makes the ring ready for a record: failures show, new segments are declared, the task begins where asked.
  Done prepare(Begin begin);
  // Space for a record; to be filled and published at once.
  template <class Record>
  Answer<Record*> reserve(protocol::RecordType type, uint32_t stream, size_t trailing_bytes = 0) {
    resume();
    if (auto* record = ring_.reserve<Record>(type, stream, trailing_bytes)) [[likely]]
      return record;
    HEDDLE_ANSWER(wait_for_space([&] { return ring_.reserve<Record>(type, stream, trailing_bytes) != nullptr; }));
    return ring_.reserve<Record>(type, stream, trailing_bytes);
  }
  // A record that is no work of a stream. Returns its sequence.
  Answer<uint64_t> append(protocol::RecordType type, uint64_t a, uint64_t b);
  // A payload's place in the bulk area; waits for space, and begins the task for that. A thread that holds payloads may
  // not wait for more, since others may do the same: it asks the ring.
  Answer<uint64_t> reserve_bulk(Lock& lock, uint64_t bytes);

  // --- the task: under the lock ---
  // As it is: it may be resting, and its worker may have ended it since.
  const LazyTask& lazy() const { return task_; }
  // Before a record, and before anything that asks whether the task has begun: one that rests goes on, or has ended.
  void resume() {
    if (task_.resting()) [[unlikely]]
      resume_resting();
  }
  // A launch of this shape follows.
  Done launch(uint64_t blocks, uint32_t threads, uint32_t registers, uint32_t shared_bytes) {
    resume();
    return done(task_.launch(blocks, threads, registers, shared_bytes));
  }
  // As LazyTask has them.
  Done created(Segment* segment, bool grant_now) { return done(task_.created(segment, grant_now)); }
  Done emptied(Segment* segment, bool touched, bool grant_now) {
    return done(task_.emptied(segment, touched, grant_now));
  }
  Done all_freed() { return done(task_.all_freed()); }
  // Begins the side device's task beside this one, which begins with it where it has not; false: heddled has no space
  // for both at once, and nothing has happened. Under the side device's lock, too.
  Answer<bool> begin_apart(DeviceTask& side);
  // Lets the worker end it (LazyTask). False: somebody waits for memory or the device, and it goes on.
  bool rest();
  // The worker must keep what it holds: module variables were written, or addresses of it are out.
  void pin_worker() { worker_pinned_ = true; }
  bool worker_pinned() const { return worker_pinned_; }
  void unpin_worker() { worker_pinned_ = false; }

  // --- these take the lock themselves ---
  bool begun();
  // The worker waits for the segment before it goes on. A worker that comes later has it.
  Done need_segment(uint64_t number);
  // Begins the task if work waits for it: lets work run that the program asks about.
  Done start_pending();
  // The same, then waits for the stream's or the event's record or for all work, prints what kernels printed, and tells
  // what went wrong.
  Done synchronize_stream(uint32_t stream, uint64_t sequence);
  // Of an event's record on that stream; `mode`: how the thread waits.
  Done synchronize_event(uint32_t event, uint32_t stream, uint64_t sequence, WaitMode mode);
  // Until it is known when that was, of a record that is done.
  Done await_time(uint32_t event, uint64_t sequence);
  Done synchronize();

 private:
  // TaskVoice
  Status await_end() override;
  Result<uint64_t> declare(const Segment& segment, bool answer) override;
  Status begin(uint64_t serial, const protocol::ComputeNeed& need) override;
  Status grow(const protocol::ComputeNeed& need) override;
  Result<uint64_t> append(protocol::RecordType type, uint64_t a) override;
  void withdrawn(const Segment& segment) override;
  void retire(Segment* segment, uint64_t sequence) override { segments_.retire(segment, sequence); }

  // The lazy task knows nothing of CUDA's codes. A device's fault stays in the ring: as_error() makes it kDeviceFault
  // on its way through the task, and failure_of() reads it from the ring again.
  Error as_error(const Failure& failure) const;
  Failure failure_of(Error error) const;
  Done done(Status status) const {
    if (status) [[likely]]
      return {};
    return tl::unexpected(failure_of(std::move(status).error()));
  }

  void resume_resting();
  template <class IsDone, class IsReported>
  Done finish(IsDone&& is_done, IsReported&& is_reported, WaitMode mode);

  // Only the wait for space calls this out of line: it begins the task, without which no space would ever come.
  template <class HasSpace>
  Done wait_for_space(HasSpace&& has_space) {
    HEDDLE_ANSWER(done(task_.begin()));
    return wait_for_commit(ring_, has_space);
  }

  RingPort& ring_;
  DeviceSegments& segments_;
  LazyTask task_;
  uint64_t last_end_ = 0;  // sequence at the end of the last task: what came before needs no new task
  bool worker_pinned_ = false;
};

}  // namespace heddle::client
