#pragma once

#include <map>
#include <vector>

#include "policy/pool.h"

namespace heddle::policy {

// What a running task holds.
struct Holding {
  uint32_t virtual_device = 0;
  DeviceId device;
  Bytes memory;
  uint64_t warps = 0;
  Bytes on_host;  // besides: memory of the task that lies on the host (eager.h)
};

// Who holds what: memory by task, workers (and so contexts) by session. The pool's totals follow from it at every step.
//
// A worker serves one virtual device of one session on one device. It is there, and its context is charged, while a
// task of that virtual device runs there; an assigned one until its session closes.
class Ledger {
 public:
  explicit Ledger(std::vector<DeviceSpec> devices) : pool_(std::move(devices)) {}

  const Pool& pool() const { return pool_; }
  // Devices where the virtual device has a worker, by id.
  std::vector<DeviceId> workers(SessionId session, uint32_t virtual_device) const;
  bool has_workers(SessionId session) const;
  bool has_worker_on(SessionId session, DeviceId device) const;
  Bytes held_on(SessionId session, DeviceId device) const;
  // The task's holding; nullptr where it does not run.
  const Holding* find(SessionId session, TaskId task) const;
  std::vector<TaskId> tasks(SessionId session) const;

  // See Pool.
  void set_outside(DeviceId device, Bytes used) { pool_.set_outside(device, used); }

  // The caller has seen to it that the device has space (Pool::fits); else the process ends.
  void begin(const Request& request, DeviceId device);
  void extend(SessionId session, TaskId task, Bytes more);
  void assign(SessionId session, uint32_t virtual_device, DeviceId device);

  // Takes back `less`, or all that the task has where that is not so much; returns how much it was.
  Bytes shrink(SessionId session, TaskId task, Bytes less);
  // Likewise of memory on the host, which is no device's.
  void put_on_host(SessionId session, TaskId task, Bytes more);
  Bytes take_from_host(SessionId session, TaskId task, Bytes less);
  void set_compute(SessionId session, TaskId task, const ComputeNeed& need);
  void end(SessionId session, TaskId task);
  // Ends the session's tasks and its assigned workers.
  void close(SessionId session);

 private:
  struct HoldingKey {
    SessionId session;
    TaskId task;
    friend auto operator<=>(const HoldingKey&, const HoldingKey&) = default;
  };
  struct WorkerKey {
    SessionId session;
    uint32_t virtual_device;
    DeviceId device;
    friend auto operator<=>(const WorkerKey&, const WorkerKey&) = default;
  };
  struct Worker {
    uint32_t tasks = 0;
    bool assigned = false;
  };
  Worker& worker(const WorkerKey& key);
  void drop_if_unused(const WorkerKey& key);

  Pool pool_;
  std::map<HoldingKey, Holding> holdings_;
  std::map<WorkerKey, Worker> workers_;
};

}  // namespace heddle::policy
