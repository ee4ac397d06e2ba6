#pragma once

#include "daemon/segment_store.h"
#include "daemon/shared.h"
#include "daemon/workers.h"
#include "policy/scheduler.h"

namespace heddle::daemon {

// The life of tasks: what clients and workers say becomes events of the scheduler, and what it decides becomes memory,
// workers and words in the ring.
//
//   begin() -> waiting -> granted (has a device; a worker is on its way) -> running -> ended
//
// What a task holds returns to the scheduler when its worker said that it has ended, or is really gone.
class Tasks : public WorkerEvents {
 public:
  using Scheduler = std::unique_ptr<policy::Scheduler>;

  // Told when a session that was ending holds nothing any more.
  using SessionReleased = std::function<void(SessionId)>;

  Tasks(Shared& shared, Workers& workers, SegmentStore& segments, Scheduler scheduler, SessionReleased released);

  const policy::Scheduler& scheduler() const { return *scheduler_; }
  // Only while there is no session.
  void replace_scheduler(Scheduler scheduler) { scheduler_ = std::move(scheduler); }
  bool binds_at_malloc() const { return binds_at_malloc_; }
  void set_binds_at_malloc(bool binds) { binds_at_malloc_ = binds; }

  void session_opened(const Session& session);
  // The virtual device has its ring now.
  void ring_opened(const Session& session, const VirtualDevice& device) { deposit_ring(session, device); }
  // A device segment that was checked already.
  void declare(Session& session, const protocol::DeclareSegment& declared);
  // A pinned host segment that has memory already, for the workers that run; one that the program gave back.
  void map_host(Session& session, const Segment& segment, bool release);
  void send_module(Session& session, const Module& module);
  Status begin(Session& session, const protocol::BeginTask& begun);
  // Both tasks, at once and on two devices: true. Else neither, and what was declared for them is forgotten.
  Result<bool> begin_apart(Session& session, const protocol::BeginApart& begun);
  void compute_grew(Session& session, const protocol::ComputeNeed& need);

  // The session's device work is over, for its program to see; it stays until its process ends.
  void fail_session(Session& session, uint32_t cuda_error, const std::string& text);
  // Takes back everything the session has; `released` follows, at once or when its workers are gone.
  void end(Session& session);

  // See policy::Scheduler.
  void outside_memory(DeviceId device, Bytes used) {
    scheduler_->outside_memory(device, used, shared_.now());
    settle();
  }

  // After a restart, once everything is in the registry: puts back what runs and asks again for what waited.
  void readopt();

  void worker_warm(Worker& worker) override;
  void worker_returned(Worker& worker, const protocol::WorkerReady& ready) override;
  void segment_freed(Worker& worker, uint64_t number) override;
  void task_ended(Worker& worker, const protocol::TaskEnded& ended) override;
  void worker_fault(Worker& worker, const protocol::WorkerFault& fault) override;
  void usage(Worker& worker, const protocol::Usage& usage) override;
  void worker_lost(Worker& worker) override;
  void worker_gone(Worker& worker, const std::string& how, bool certainly) override;
  void mps_lost(DeviceId device, const MpsFault& fault) override;
  Bytes free_memory(DeviceId device) const override { return scheduler_->pool().free(device); }

  // Called when a segment went, for clients whose declarations wait for that.
  std::function<void(Session&)> on_segment_removed = [](Session&) {};

 private:
  using Decision = policy::Decision;

  // Requests (tasks.cc).
  void start(Session& session, VirtualDevice& device, std::unique_ptr<Task> task, Bytes memory);
  void start_next(Session& session, VirtualDevice& device);
  // `reclaimed`: what was idle is back, as far as it comes.
  void ask_for_held_back(Session& session, VirtualDevice& device, bool reclaimed = false);
  std::optional<policy::TaskRequest> request_apart(Session& session, const protocol::BeginTask& begun);
  void forget(Session& session, VirtualDevice& device);
  // The one end of a task, whoever ended it: its program, its worker, its session or the scheduler.
  void end_task(const Session& session, VirtualDevice& device, const char* how, Bytes memory,
                const std::string& reason);
  void release(Session& session, VirtualDevice& device);
  void drop_segments(Session& session, VirtualDevice& device);
  void remove_segment(Session& session, Segment& segment);
  void deposit_task(const Session& session, const VirtualDevice& device);
  void deposit_ring(const Session& session, const VirtualDevice& device);
  void finish_if_released(Session& session);
  void trace(const char* kind, const Session& session, const Task& task, Bytes memory, const std::string& reason);
  void carry_over(Session& session, VirtualDevice& device);
  void readopt(Session& session, VirtualDevice& device);

  // Memory that programs have freed and keep (idle.cc).
  void arrive(Session& session, VirtualDevice& device);
  void pass_on(Session& session, VirtualDevice& device);
  bool must_reclaim(Session& session, const Task& task, Bytes more);
  bool reclaim_for(const Session& waiting);
  bool reclaim(const Session& session, VirtualDevice& device);
  void reclaimed(WorkerId worker);
  void stop_waiting();
  void resume_delayed();
  void say_who_may_idle();

  // Decisions (grants.cc).
  void settle();
  void decide();
  void granted(const Decision& decision);
  void extended(const Decision& decision);
  static void answer(const Session& session, Segment& segment);
  void refused(const Decision& decision);
  void want_worker(Session& session, VirtualDevice& device);
  void bind_waiting(DeviceId device);
  void bind(Session& session, VirtualDevice& device, Worker& worker);
  Status back_all(Session& session, const VirtualDevice& device);
  void send_binding(const Session& session, VirtualDevice& device);
  void complete_return(WorkerId id);
  void send_everything(Session& session, VirtualDevice& device);
  void send_device_segments(Session& session, VirtualDevice& device);
  Worker* worker_of(const Session& session, const VirtualDevice& device);
  static void proceed(const VirtualDevice& device);
  static bool takes_memory(const VirtualDevice& device);
  void memory_came(Session& session, Segment& segment);
  static void send_device_segment(Worker& worker, Segment& segment);
  static void send_segment(Worker& worker, const Segment& segment, bool release);
  static void let_go(Session& session, const VirtualDevice& device);

  // Faults (faults.cc).
  void share_fault(const Worker& origin, const std::string& why);
  void died_at_work(const Worker& worker, const Session& session, const VirtualDevice& device);
  static std::string shared_text(DeviceId device, uint32_t cuda_error);

  std::pair<Session*, VirtualDevice*> owner_of(TaskId task);

  Shared& shared_;
  Workers& workers_;
  SegmentStore& segments_;
  Scheduler scheduler_;
  SessionReleased released_;
  bool binds_at_malloc_ = false;
  std::map<TaskId, std::pair<SessionId, uint32_t>> owners_;
  bool settling_ = false;
  std::deque<TaskId> delayed_;      // not in the scheduler, or not their next extension, until idle memory is back
  std::set<WorkerId> awaited_;      // asked to give back what is idle
  std::set<WorkerId> unanswering_;  // the same, for too long
  EventLoop::Timer patience_;
  EventLoop::Timer deadline_;
};

}  // namespace heddle::daemon
