#pragma once

#include "daemon/clients.h"
#include "daemon/eager_tasks.h"
#include "daemon/kept_history.h"
#include "daemon/outside_memory.h"
#include "daemon/task_swaps.h"
#include "daemon/worker_executor.h"

namespace heddle::daemon {

// One turn of heddled, at the end of each round of the loop in which an event was posted. What is left of a long turn
// goes on in the next round, behind a look at what else has come: nobody waits long for what others ask.
//
//   events    handled in the order in which they were noticed, users in turn (events.h): programs, workers, keepers
//   plan      a deadline policy says which devices the scheduler may give to whom (Leases::plan)
//   decide    the scheduler decides once about all of them (Scheduler::decisions)
//   act       Tasks carries each decision out; that may post further events, which this turn handles too
//   lend      the dispatch policies decide about devices whose lessees something has happened to (leases.h)
//   commit    the loop commits deposits before it sleeps, and before each message that somebody could act on
//             (VaultLink::commit)
class Turn {
 public:
  Turn(Shared& shared, Tasks& tasks, WorkerExecutor& executor, Workers& workers, SegmentStore& segments, Copies& copies,
       Swaps& swaps, OutsideMemory& outside, Leases& leases, Sessions& sessions, Requests& requests, Clients& clients,
       KeptHistory& history)
      : shared_(shared),
        tasks_(tasks),
        executor_(executor),
        workers_(workers),
        segments_(segments),
        copies_(copies),
        swaps_(swaps),
        outside_(outside),
        leases_(leases),
        sessions_(sessions),
        requests_(requests),
        clients_(clients),
        history_(history) {}

  void run();

 private:
  void handle(ClientSaid event) { clients_.said(event.client, std::move(event.packet)); }
  void handle(const ClientClosed& event) { clients_.closed(event.client, event.why); }
  void handle(const ProcessEnded& event) { sessions_.process_ended(event.session); }
  void handle(const WorkerWarm& event) { serve(event.device); }
  void handle(const WorkerReturned& event) { executor_.worker_returned(event.worker, event.ready); }
  void handle(const WorkerSaid& event) { executor_.worker_said(event.worker, event.packet); }
  void handle(const WorkerLost& event) { executor_.worker_lost(event.worker); }
  void handle(const WorkerOffDevice& event) { executor_.worker_off_device(event.worker); }
  void handle(const WorkerGone& event);
  void handle(const DeviceFaulted& event) { executor_.shared_faults().faulted(event.device, event.fault); }
  void handle(const DeviceLeft& event) { executor_.shared_faults().left(event.device); }
  void handle(const DeviceCleared& event) { executor_.shared_faults().cleared(event.device); }
  void handle(const TrialDue& event) { executor_.shared_faults().trial_due(event.device); }
  void handle(const ExecutorWanted& event) { serve(event.device); }
  void handle(MemoryAnswered event);
  void handle(const CopyAnswered& event);
  void handle(const FreeMemoryReported& event);
  void handle(const ContextsFreed& event) { segments_.ask_again(event.request); }
  void handle(const IdleReturned& event) { tasks_.resume(event.delayed); }
  void handle(const SegmentRemoved& event) { requests_.retry_deferred(event.session); }
  void handle(const LeasesDue& event) { leases_.due(event.device); }
  void handle(const LeaseOverdue& event);
  void handle(const TerminationOrdered& event) { executor_.terminate(event.session, event.virtual_device); }
  void handle(const MemoryMoved& event) {
    if (!EagerTasks(tasks_).memory_moved(event)) TaskSwaps(tasks_).memory_moved(event);
  }
  void handle(const JobNotSwapped& event) { sessions_.not_swapped(event.job); }
  void handle(const JobNotSuspended& event) { sessions_.not_suspended(event.job); }

  void serve(DeviceId device);
  bool spares_who_is_alone() const;

  Shared& shared_;
  Tasks& tasks_;
  WorkerExecutor& executor_;
  Workers& workers_;
  SegmentStore& segments_;
  Copies& copies_;
  Swaps& swaps_;
  OutsideMemory& outside_;
  Leases& leases_;
  Sessions& sessions_;
  Requests& requests_;
  Clients& clients_;
  KeptHistory& history_;
  EventLoop::Timer deadline_, rest_;
};

}  // namespace heddle::daemon
