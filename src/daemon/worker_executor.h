#pragma once

#include "daemon/executor.h"
#include "daemon/leases.h"
#include "daemon/segment_store.h"
#include "daemon/shared_faults.h"
#include "daemon/terminations.h"

namespace heddle::daemon {

// Tasks are served by worker processes of this machine (workers.h): the one that stayed for the virtual device's next
// task, else a warm one of the device. Says to workers what they need, tells ExecutorEvents what they report, and deals
// with faults: those that may be another program's are shared_faults.h's. Where a worker dies with nothing under way,
// another goes on in its place (resume.cc).
class WorkerExecutor : public Executor {
 public:
  WorkerExecutor(Shared& shared, Workers& workers, SegmentStore& segments, Leases& leases)
      : shared_(shared), workers_(workers), segments_(segments), leases_(leases), shared_faults_(shared, workers) {}
  void connect(ExecutorEvents& events) {
    events_ = &events;
    shared_faults_.connect(events);
  }
  SharedFaults& shared_faults() { return shared_faults_; }

  void session_opened() override { workers_.expect(); }
  void find(Session& session, VirtualDevice& device) override;
  void engage(Session& session, VirtualDevice& device) override;
  void hand_over(Session& session, VirtualDevice& device) override;
  void suspend(const VirtualDevice& device) override;
  void stop(VirtualDevice& device) override;
  void retire_kept(const Session& session, const VirtualDevice& device) override;
  std::optional<ExecutorId> serving(const VirtualDevice& device) const override;
  pid_t process(const VirtualDevice& device) const override { return device.worker ? device.worker->pid : 0; }
  bool takes_memory(const VirtualDevice& device) const override;
  void map_segment(VirtualDevice& device, Segment& segment) override;
  void proceed(const VirtualDevice& device) override;
  void map_host(Session& session, const Segment& segment, bool release) override;
  void send_module(Session& session, const Module& module) override;

  // After a restart: a worker of a former life. It is killed where it serves no task.
  void adopt(Worker worker);

  // Pairs the next task that waits for a worker of the device with one; none if no task or no worker is left. The
  // caller engages the worker before it asks again (Turn::serve).
  struct Pair {
    Session* session;
    VirtualDevice* device;
  };
  std::optional<Pair> pair(DeviceId device);
  // Events (events.h). Nothing happens where the worker has gone meanwhile.
  void worker_returned(WorkerId id, const protocol::WorkerReady& ready);
  void worker_said(WorkerId id, const protocol::Packet& packet);
  void worker_lost(WorkerId id);
  void worker_off_device(WorkerId id);
  // Returns the session that the worker served, if it was ending and now holds nothing.
  std::optional<SessionId> worker_gone(const WorkerGone& event);
  void terminate(SessionId session, uint32_t virtual_device) { terminations_.ordered(session, virtual_device); }

 private:
  Worker* worker_for(const Session& session, const VirtualDevice& device);
  void segment_freed(const Worker& worker, uint64_t number);
  void lease_said(const Worker& worker, const protocol::Packet& packet);
  void suspended(Worker& worker, const protocol::Suspended& said);
  void task_ended(Worker& worker, const protocol::TaskEnded& ended);
  void worker_fault(Worker& worker, const protocol::WorkerFault& fault);
  void complete_return(WorkerId id);
  void send_everything(Session& session, VirtualDevice& device);
  void send_device_segments(Session& session, VirtualDevice& device);
  Worker* worker_of(const Session& session, const VirtualDevice& device);

  // A worker has died, and another can go on in its place, or not (resume.cc).
  std::string obstacle_to_resume(const Worker& worker, const Session& session, VirtualDevice& device,
                                 bool crashed) const;
  bool ended_for_a_shared_fault(const Worker& worker) const;
  void resume(const Worker& worker, Session& session, VirtualDevice& device, const WorkerGone& event);
  bool say_again(Session& session, VirtualDevice& device);

  Shared& shared_;
  Workers& workers_;
  SegmentStore& segments_;
  Leases& leases_;
  SharedFaults shared_faults_;
  Terminations terminations_{shared_, workers_, leases_};
  ExecutorEvents* events_ = nullptr;
};

}  // namespace heddle::daemon
