#pragma once

#include "core/input_log.h"
#include "daemon/gpu_locks.h"
#include "daemon/kept_history.h"
#include "daemon/outside_memory.h"
#include "daemon/restore.h"
#include "daemon/turn.h"

namespace heddle::daemon {

// heddled as a whole: builds the parts, connects them, and runs them on one loop.
class Daemon {
 public:
  struct Options {
    Config config;
    Places places;
    std::string worker_program;  // heddle-worker's path
    std::string keeper_program;  // heddle-keeper's path; empty where it is not installed
    int worker_output = -1;      // where workers' and keepers' standard error goes; -1: ours
    VaultLink::StartVault start_vault;
    std::function<Result<std::string>()> list_gpus;  // see gpus.h; called in the first life, where GPUs are wanted
  };

  // Takes everything back from the vault at `vault` and is ready to run.
  static Result<std::unique_ptr<Daemon>> create(Options options, protocol::Socket vault, const Clock& clock);
  ~Daemon();

  // Until shut_down() has done its work.
  Status run() { return loop_->run(); }
  EventLoop& loop() { return *loop_; }
  // Refuses what is new, ends sessions and workers, and then the vault and the loop.
  void shut_down();
  // A connection on the control socket.
  void accept_client(protocol::Socket socket) { clients_->accept(std::move(socket)); }
  // Books and registry, for tests.
  const Registry& registry() const { return registry_; }
  const policy::Scheduler& scheduler() const { return tasks_->scheduler(); }

 private:
  Daemon(Options options, std::unique_ptr<EventLoop> loop, const Clock& clock);
  Status start(protocol::Socket vault);
  Status add_machine_gpus(std::vector<RestoredItem>& items);
  void warn_of_settings() const;
  Result<std::string> gpu_list(std::vector<RestoredItem>& items);
  Status make_boards();
  Status start_gpus();
  void adopt(TakenOver restored);
  Status listen(Fd& listener, EventLoop::Watch& watch, void (Daemon::*accept)(protocol::Socket));
  void accept_all(const Fd& listener, EventLoop::Watch& watch, void (Daemon::*accept)(protocol::Socket));
  void accept_worker(protocol::Socket socket) { workers_->accept(std::move(socket)); }
  Status open_input_log();
  void restore_history(policy::RecordedScheduler& scheduler);
  std::vector<policy::DeviceSpec> device_specs() const;
  Result<Tasks::Scheduler> make_scheduler(const std::string& policy, bool& grants_at_malloc) const;
  Status set_policy(const std::string& policy);
  void deposit_life();
  void end_when_empty();

  Options options_;
  std::unique_ptr<EventLoop> loop_;
  std::shared_ptr<spdlog::logger> log_;
  Fd gpu_list_;  // with the vault
  Registry registry_;
  Trace trace_;
  std::unique_ptr<InputLog> input_log_;  // none: nothing is written
  KeptHistory history_;
  VaultLink vault_;
  IdSource ids_;
  EventQueue events_;
  Shared shared_;
  Mps mps_;
  GpuLocks gpu_locks_;
  Keepers keepers_;
  Copies copies_;
  SwapSpace swap_space_;
  SegmentStore segments_;
  Swaps swaps_;
  Workers workers_storage_;
  Workers* workers_ = &workers_storage_;
  std::unique_ptr<policy::DeadlineFamily> deadlines_;  // where the dispatch policy has any
  Leases leases_;
  WorkerExecutor executor_;
  std::unique_ptr<Tasks> tasks_;
  std::unique_ptr<OutsideMemory> outside_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Commands> commands_;
  std::unique_ptr<Clients> clients_;
  std::unique_ptr<Turn> turn_;
  Fd control_, worker_;
  EventLoop::Watch control_watch_, worker_watch_;
  EventLoop::Timer accept_pause_, job_grace_, end_timer_;
  uint64_t starts_ = 0;
  bool ending_ = false;
  TimePoint end_by_{};
};

}  // namespace heddle::daemon
