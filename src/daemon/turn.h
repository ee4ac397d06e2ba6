#pragma once

#include "daemon/clients.h"
#include "daemon/worker_executor.h"

namespace heddle::daemon {

// One turn of heddled, at the end of each round of the loop in which something has happened:
//
//   events    what programs, workers, keepers and timers have brought (events.h), in the order in which it was noticed
//   decide    Scheduler::decisions: once for all of it
//   act       Tasks carries each decision out; what comes of that is an event again
//   commit    VaultLink::commit: before the loop sleeps, and before any message that somebody could act on
class Turn {
 public:
  Turn(Shared& shared, Tasks& tasks, WorkerExecutor& executor, Workers& workers, SegmentStore& segments,
       Sessions& sessions, Requests& requests, Clients& clients)
      : shared_(shared),
        tasks_(tasks),
        executor_(executor),
        workers_(workers),
        segments_(segments),
        sessions_(sessions),
        requests_(requests),
        clients_(clients) {}

  void run();

 private:
  void take(ClientSaid event) { clients_.said(event.client, std::move(event.packet)); }
  void take(const ClientClosed& event) { clients_.closed(event.client, event.why); }
  void take(const ProcessEnded& event) { sessions_.process_ended(event.session); }
  void take(const WorkerWarm& event) { serve(event.device); }
  void take(const WorkerReturned& event) { executor_.worker_returned(event.worker, event.ready); }
  void take(const WorkerSaid& event) { executor_.worker_said(event.worker, event.packet); }
  void take(const WorkerLost& event) { executor_.worker_lost(event.worker); }
  void take(const WorkerGone& event);
  void take(const MpsLost& event) { executor_.mps_lost(event.device, event.fault); }
  void take(const ExecutorWanted& event) { serve(event.device); }
  void take(MemoryAnswered event);
  void take(const RoomMade& event) { segments_.ask_again(event.request); }
  void take(const IdleReturned& event) { tasks_.resume(event.delayed); }
  void take(const SegmentRemoved& event) { requests_.retry_deferred(event.session); }

  void serve(DeviceId device);

  Shared& shared_;
  Tasks& tasks_;
  WorkerExecutor& executor_;
  Workers& workers_;
  SegmentStore& segments_;
  Sessions& sessions_;
  Requests& requests_;
  Clients& clients_;
  EventLoop::Timer deadline_;
};

}  // namespace heddle::daemon
