#pragma once

#include "daemon/executor.h"
#include "daemon/idle_holders.h"
#include "daemon/idle_memory.h"
#include "daemon/leases.h"
#include "daemon/segment_store.h"
#include "daemon/shared.h"
#include "daemon/task_performer.h"
#include "policy/record/recorded_scheduler.h"

namespace heddle::daemon {

// The life of tasks: what programs, executors and the scheduler say becomes events of a state machine (task_state.h),
// and its actions are carried out by a TaskPerformer. What a task holds returns to the scheduler when its executor said
// that it has ended, or is really gone.
class Tasks : public ExecutorEvents {
 public:
  using Scheduler = std::unique_ptr<policy::RecordedScheduler>;

  Tasks(Shared& shared, Executor& executor, SegmentStore& segments, Leases& leases, Swaps& swaps, Scheduler scheduler,
        bool grants_at_malloc);

  const policy::Scheduler& scheduler() const { return *scheduler_; }
  // Whether memory is granted at cudaMalloc, before a task begins.
  bool grants_at_malloc() const { return grants_at_malloc_; }
  // Only while there is no session.
  void set_scheduler(Scheduler scheduler, bool grants_at_malloc) {
    scheduler_ = std::move(scheduler);
    grants_at_malloc_ = grants_at_malloc;
  }

  void session_opened(const Session& session);
  // The virtual device has its ring now.
  void ring_opened(const Session& session, const VirtualDevice& device) {
    performer_.deposit_ring(session, device);
    performer_.deposit_control(session, device);
  }
  // A device segment that was checked already.
  void declare(Session& session, const protocol::DeclareSegment& declared);
  Status begin(Session& session, const protocol::BeginTask& begun);
  // Both tasks, at once and on two devices: true. Else neither, and what was declared for them is forgotten.
  Result<bool> begin_apart(Session& session, const protocol::BeginApart& begun);
  void compute_grew(Session& session, const protocol::ComputeNeed& need);
  // Takes back everything the session has. True where it holds nothing any more; else its executors go first
  // (executor_gone).
  bool end(Session& session);

  // The virtual device's task is suspended, or goes on, as its job says, which is deposited by now, and as its program
  // needs a device. Also where nothing has changed.
  void follow_job(Session& session, VirtualDevice& device);

  // See policy::Scheduler.
  void outside_memory(DeviceId device, Bytes used) {
    scheduler_->outside_memory(device, used, shared_.now());
    shared_.events.books_changed();
  }

  // After a restart, once everything is in the registry: puts back what runs and asks again for what waited.
  void readopt();

  // In a turn (turn.h).
  void decide();
  void say_who_may_idle() { idle_.say_who_may_idle(*scheduler_); }
  void executor_found(Session& session, VirtualDevice& device) { apply(session, device, TaskEvent::kServed); }
  void memory_came(Session& session, Segment& segment) { performer_.memory_came(session, segment); }
  // What they waited for is back, as far as it comes.
  void resume(const std::deque<TaskId>& delayed);

  void executor_rejoined(Session& session, VirtualDevice& device) override {
    apply(session, device, TaskEvent::kRejoined);
  }
  void segment_freed(Session& session, VirtualDevice& device, uint64_t number) override;
  void finished(Session& session, VirtualDevice& device, bool unmapped) override;
  bool executor_gone(Session& session, VirtualDevice& device, const std::string& why, bool certainly) override;
  void executor_lost(Session& session, VirtualDevice& device) override;
  void executor_stays(Session& session, VirtualDevice& device) override;
  void idle_returned(ExecutorId executor) override { idle_.returned(executor); }
  void fail_session(Session& session, uint32_t cuda_error, const std::string& text) override;

 private:
  friend class TaskSwaps;   // tasks that leave their device (task_swaps.h)
  friend class EagerTasks;  // tasks that have a part of their memory on the host (eager_tasks.h)
  friend class HostTimes;   // what programs compute themselves (host_times.h)
  using Decision = policy::Decision;

  // What programs ask for (tasks.cc).
  void start(Session& session, VirtualDevice& device, std::unique_ptr<Task> task, Bytes memory);
  void start_next(Session& session, VirtualDevice& device);
  void carry_over(Session& session, VirtualDevice& device);
  // `reclaimed`: what was idle is back, as far as it comes.
  void ask_for_held_back(Session& session, VirtualDevice& device, bool reclaimed = false);
  void arrive(Session& session, VirtualDevice& device);
  void pass_on(Session& session, VirtualDevice& device);
  void readopt(Session& session, VirtualDevice& device);

  // The state machine, and what the scheduler decides (task_life.cc).
  void apply(Session& session, VirtualDevice& device, TaskEvent event);
  void release(Session& session, VirtualDevice& device);
  bool released(const Session& session);
  void granted(const Decision& decision);
  void extended(const Decision& decision);
  void refused(const Decision& decision);

  Shared& shared_;
  Executor& executor_;
  SegmentStore& segments_;
  Leases& leases_;
  Swaps& swaps_;
  TaskPerformer performer_;
  IdleMemory idle_;
  IdleHolders idle_holders_;
  Scheduler scheduler_;
  bool grants_at_malloc_;
};

}  // namespace heddle::daemon
