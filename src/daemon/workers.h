#pragma once

#include "daemon/held_back.h"
#include "daemon/mps_recovery.h"
#include "daemon/shared.h"
#include "daemon/stopped_workers.h"

namespace heddle::daemon {

// Whether what a worker has said last still counts once its program has ended and it was killed: a fault that is not
// only its own.
bool counts_though_killed(const protocol::Packet& packet);

// From the last one of so many failed starts in a row to the next.
Duration start_backoff(uint32_t failures);

// A worker has left the registry: what waited for its device's memory is asked for again.
void contexts_freed(const Shared& shared, DeviceId device);
// Whether its task is being made to leave the device (terminations.h); the vault knows it on return.
void note_terminating(Shared& shared, Worker& worker, bool terminating);

// Starts worker processes, keeps some warm for each device, speaks their protocol, and notices their end.
class Workers {
 public:
  struct Launch {
    std::string program;  // heddle-worker's path
    int output = -1;      // where its standard error goes; -1: ours
    std::string cache;    // directory where GPUs' workers keep what the driver compiled; empty: nowhere
  };

  // `mps` outlives the workers.
  Workers(Shared& shared, Launch launch, Mps& mps);
  // What of a device's memory is promised to nobody.
  using FreeMemory = std::function<Bytes(DeviceId)>;
  // MPS has been started where it is wanted.
  void connect(FreeMemory free_memory);

  // A warm worker of the device, for the caller to bind; none where there is none yet. Another is started in its place.
  Worker* take_warm(DeviceId device, std::pair<SessionId, uint32_t> whom);
  // Starts what is missing: one for each that waits, and the warm ones (warm_target.h). Those that are too many end.
  void refill(DeviceId device);
  // A session was opened: its worker can be on its way.
  void expect();
  // Ends the GPU's workers that serve nobody and nobody waits for, whose contexts take memory; ContextsFreed follows
  // when they are gone. False where there are none.
  bool free_contexts(const MemoryRequest& request);

  // Records what a bound worker serves, in the vault too.
  void bound(Worker& worker, SessionId session, uint32_t virtual_device, uint64_t serial);
  // Its task has ended. It stays for the next task of the same virtual device: what it has built there, and nothing of
  // another's, is still in it. Of too many the one that has stayed longest is retired, of those first that hold no
  // variables of modules which are not saved.
  void keep(Worker& worker);
  // The worker that stays for the virtual device.
  Worker* kept_for(SessionId session, uint32_t virtual_device);
  // It is told to end, and made to if it does not. Until then it serves nobody, or counts as serving its task.
  enum class Until { kIdle, kServing };
  void retire(Worker& worker, Until until = Until::kIdle);
  // SIGKILL; WorkerGone follows when the process is really gone. A client of MPS is first taken off the GPU.
  void kill(Worker& worker);
  // A worker that nobody is served by is of no use any more.
  void discard(Worker& worker);
  // Where programs share their faults: all workers of the device are ended, but for those outside of its MPS, which is
  // started anew. DeviceLeft follows, and DeviceCleared; until then no worker is started but for trials outside of MPS.
  // Nothing while that is under way; false on other devices.
  bool recover(DeviceId device, const SharedFault& fault);
  bool recovering(DeviceId device) const { return recovering_.contains(device); }
  bool under_mps(DeviceId device) const { return mps_.serves(device); }
  // Where the task that the worker serves is to go on (mps_clients.h).
  std::optional<Worker::Kind> kind_to_move_to(const Worker& worker);

  // What it was is in no book any more (WorkerGone): it leaves the registry.
  void forget(WorkerId id);

  // After a restart: a worker of a former life. It is killed if it does not come back within the grace.
  void adopt(Worker worker);
  // A connection on the worker socket.
  void accept(protocol::Socket socket);

  // heddled ends: no worker is started any more.
  void stop();

 private:
  // The pool (warm_pool.cc). What is wanted of a kind of worker: for those that wait, for those that are about to, and
  // that stand ready in all; whether more than that end.
  struct Supply {
    Worker::Kind kind;
    size_t waiting = 0, greeted = 0, warm = 0;
    bool shrinks = false;
  };
  void supply(DeviceId device, const Supply& supply);
  void start_later(DeviceId device, TimePoint when);
  Status start(DeviceId device, Worker::Kind kind);
  void make_way_for_another(DeviceId device);
  void send_start(Worker& worker);
  void listen(Worker& worker, protocol::Socket socket);
  void received(WorkerId id, protocol::Packet packet);
  void lost(WorkerId id, const Error& error);
  void ready(Worker& worker, const protocol::WorkerReady& ready);
  void ended(WorkerId id);
  void start_failed(DeviceId device, Worker::Kind kind, const std::string& why, bool refused);
  DeviceState& device_of(DeviceId id) { return shared_.registry.devices[id.value]; }
  void greet_later(uint64_t key, const protocol::Packet& packet);

  // Under MPS (workers_mps.cc).
  bool take_off(Worker& worker);
  void taken_off(WorkerId id, bool in_time);
  void end_client(Worker& worker);
  void start_refused(DeviceId device);
  void serve_outside_mps(DeviceId device);
  void client_gone(DeviceId device);
  void recovered(DeviceId device);

  Shared& shared_;
  Launch launch_;
  Mps& mps_;
  MpsCommands commands_;
  MpsRecovery recovery_;
  std::set<DeviceId> recovering_;
  StoppedWorkers stopped_;
  HeldBack held_back_;
  std::set<WorkerId> taking_off_;  // by MPS
  FreeMemory free_memory_ = [](DeviceId) { return Bytes{}; };
  bool stopping_ = false;
  uint64_t last_stranger_ = 0;
  std::map<uint64_t, std::unique_ptr<Connection>> strangers_;  // on the worker socket, not yet known
};

}  // namespace heddle::daemon
