#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "policy/device_spec.h"
#include "policy/task.h"

namespace heddle::policy {

class PlacementGate;

// A request as a policy sees it.
struct Request {
  TaskId task;
  SessionId session;
  JobId job;
  uint32_t virtual_device = 0;
  size_t model = 0;  // index into the pool's models
  Bytes memory;
  ComputeNeed compute;
  std::span<const DeviceId> workers;  // devices where this virtual device has a worker already
  std::optional<DeviceId> closed;     // reserved for an older request: not to be used
  const PlacementGate* gate = {};     // where there is one: whether it may go to a device
};

// What is in use on one device. Laid out for a scan over a thousand of them.
struct DeviceLoad {
  Bytes free;      // capacity less what is promised to tasks and contexts, and what is withheld
  Bytes outside;   // that processes outside of heddled use of the capacity
  Bytes withheld;  // of that, what is not promised: nobody gets it
  Bytes context;   // the price of one more worker
  Bytes tasks_memory;
  Bytes contexts_memory;
  Bytes on_host;       // memory of tasks here that lies on the host (eager.h)
  uint64_t warps = 0;  // resident warps of the tasks here, each counted as if alone; may exceed the device
  uint32_t workers = 0;
  uint32_t max_workers = 0;  // 0: unlimited
  uint32_t tasks = 0;
};

// The devices and what is in use on each: all that a policy may look at. Only the ledger changes it.
// Invariant, checked at every change: tasks_memory + contexts_memory + free + withheld = capacity, none below zero.
class Pool {
 public:
  // `devices[i].id` must be i.
  explicit Pool(std::vector<DeviceSpec> devices);

  size_t size() const { return loads_.size(); }
  bool has(DeviceId device) const { return device.value < loads_.size(); }
  const DeviceSpec& spec(DeviceId device) const { return fixed_->specs[device.value]; }
  const DeviceLoad& load(DeviceId device) const { return loads_[device.value]; }
  Bytes free(DeviceId device) const { return loads_[device.value].free; }
  uint64_t max_warps(DeviceId device) const;

  size_t models() const { return fixed_->models.size(); }
  std::optional<size_t> find_model(std::string_view name) const;
  std::string_view model_name(size_t model) const { return fixed_->models[model].name; }
  std::span<const DeviceId> devices_of(size_t model) const { return fixed_->models[model].devices; }
  size_t model_of(DeviceId device) const { return fixed_->model_of[device.value]; }

  // Whether the request's memory, and a worker where it has none yet, can be had on `device` now.
  bool fits(const Request& request, DeviceId device) const;
  // Bytes the request would take there: its memory, and a context where it has no worker yet.
  Bytes need(const Request& request, DeviceId device) const;
  // Whether `memory` and one worker fit the device when nothing else is on it.
  bool could_hold(Bytes memory, DeviceId device) const;

  void take_memory(DeviceId device, Bytes amount);
  void return_memory(DeviceId device, Bytes amount);
  // What processes outside of heddled use of the device's capacity now. A promise stands all the same: where they took
  // what is promised, the device keeps as much of what returns.
  void set_outside(DeviceId device, Bytes used);
  void add_worker(DeviceId device);
  void remove_worker(DeviceId device);
  void add_task(DeviceId device, uint64_t warps);
  void remove_task(DeviceId device, uint64_t warps);
  void put_on_host(DeviceId device, Bytes amount);
  void take_from_host(DeviceId device, Bytes amount);

 private:
  struct Model {
    std::string name;
    std::vector<DeviceId> devices;  // by id
  };
  struct Fixed {
    std::vector<DeviceSpec> specs;
    std::vector<Model> models;     // in order of their first device
    std::vector<size_t> model_of;  // by device
  };
  static void withhold(DeviceLoad& there);
  static bool needs_worker(const Request& request, DeviceId device);
  DeviceLoad& at(DeviceId device);

  // Shared among copies of the pool: it never changes, and a search for deadlocks copies the pool.
  std::shared_ptr<const Fixed> fixed_;
  std::vector<DeviceLoad> loads_;
};

}  // namespace heddle::policy
