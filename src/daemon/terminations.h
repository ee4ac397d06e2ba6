#pragma once

#include <map>

#include "daemon/leases.h"
#include "daemon/workers.h"

namespace heddle::daemon {

// Has tasks leave their devices at once where a dispatch policy orders it (policy::Withdraw::terminate): the worker is
// killed, and the task goes on in another one (resume.cc). The lease was withdrawn before, and nobody is lent the
// device before the worker is gone, or on a GPU is off it (WorkerOffDevice): there the end of its process takes 60 ms
// more, which concern its own memory alone.
//
//   ordered --it would not outlive its worker--> refused: it drains
//      | noted with the vault, then stopped (SIGSTOP)
//   stopping --it would not outlive its worker, that does not stop, or its lease is back--> continued
//      | all threads have stopped
//   killed (under MPS continued, and taken off the GPU first); WorkerGone follows
//
// A worker that is stopped hands nothing over: what its page says then is what its death leaves. Without that a record
// that was on its way to the device when the order came would cost the program its session.
//
// A heddled that dies after the note leaves a worker that is stopped or dead. Its successor finds the note and does the
// same again: the order is as good as before, since the lease is still withdrawn.
//
// The task is bound to another worker at once and waits there for its lease, which costs nobody anything but a context:
// without a lease a worker hands nothing over. What it restores first, it copies beside whoever has the device.
class Terminations {
 public:
  Terminations(Shared& shared, Workers& workers, Leases& leases)
      : shared_(shared), workers_(workers), leases_(leases) {}

  // TerminationOrdered has come. Nothing where the lease is back, or the worker has gone.
  void ordered(SessionId session, uint32_t virtual_device);

 private:
  struct Stopping {
    bool again = false;  // by order of a heddled before this one
    int looks = 0;
    EventLoop::Timer timer;
  };

  void stop(Worker& worker, bool again);
  void look(WorkerId id);
  void let_go_on(Worker& worker);
  void kill(Worker& worker, Session& session, VirtualDevice& device);

  Shared& shared_;
  Workers& workers_;
  Leases& leases_;
  std::map<WorkerId, Stopping> stopping_;
};

}  // namespace heddle::daemon
