#include "policy/ledger.h"

#include <algorithm>

#include "policy/invariant.h"
#include "policy/occupancy.h"

namespace heddle::policy {

std::vector<DeviceId> Ledger::workers(SessionId session, uint32_t virtual_device) const {
  std::vector<DeviceId> devices;
  for (auto it = workers_.lower_bound({session, virtual_device, {}});
       it != workers_.end() && it->first.session == session && it->first.virtual_device == virtual_device; ++it) {
    devices.push_back(it->first.device);
  }
  return devices;
}

bool Ledger::has_workers(SessionId session) const {
  const auto it = workers_.lower_bound({session, 0, {}});
  return it != workers_.end() && it->first.session == session;
}

bool Ledger::has_worker_on(SessionId session, DeviceId device) const {
  for (auto it = workers_.lower_bound({session, 0, {}}); it != workers_.end() && it->first.session == session; ++it) {
    if (it->first.device == device) return true;
  }
  return false;
}

Bytes Ledger::held_on(SessionId session, DeviceId device) const {
  Bytes sum;
  for (auto it = holdings_.lower_bound({session, {}}); it != holdings_.end() && it->first.session == session; ++it) {
    if (it->second.device == device) sum += it->second.memory;
  }
  return sum;
}

const Holding* Ledger::find(SessionId session, TaskId task) const {
  const auto it = holdings_.find({session, task});
  return it == holdings_.end() ? nullptr : &it->second;
}

std::vector<TaskId> Ledger::tasks(SessionId session) const {
  std::vector<TaskId> tasks;
  for (auto it = holdings_.lower_bound({session, {}}); it != holdings_.end() && it->first.session == session; ++it) {
    tasks.push_back(it->first.task);
  }
  return tasks;
}

Ledger::Worker& Ledger::worker(const WorkerKey& key) {
  const auto [it, is_new] = workers_.try_emplace(key);
  if (is_new) pool_.add_worker(key.device);
  return it->second;
}

void Ledger::drop_if_unused(const WorkerKey& key) {
  const auto it = workers_.find(key);
  if (it->second.tasks > 0 || it->second.assigned) return;
  pool_.remove_worker(key.device);
  workers_.erase(it);
}

void Ledger::begin(const Request& request, DeviceId device) {
  const uint64_t warps = resident(request.compute, pool_.spec(device)).warps;
  const Holding holding{request.virtual_device, device, request.memory, warps, {}};
  require(holdings_.try_emplace({request.session, request.task}, holding).second, "a task begins once");
  ++worker({request.session, request.virtual_device, device}).tasks;
  pool_.take_memory(device, request.memory);
  pool_.add_task(device, warps);
}

void Ledger::extend(SessionId session, TaskId task, Bytes more) {
  Holding& holding = holdings_.at({session, task});
  pool_.take_memory(holding.device, more);
  holding.memory += more;
}

void Ledger::assign(SessionId session, uint32_t virtual_device, DeviceId device) {
  worker({session, virtual_device, device}).assigned = true;
}

Bytes Ledger::shrink(SessionId session, TaskId task, Bytes less) {
  Holding& holding = holdings_.at({session, task});
  less = std::min(less, holding.memory);
  pool_.return_memory(holding.device, less);
  holding.memory -= less;
  return less;
}

void Ledger::put_on_host(SessionId session, TaskId task, Bytes more) {
  Holding& holding = holdings_.at({session, task});
  pool_.put_on_host(holding.device, more);
  holding.on_host += more;
}

Bytes Ledger::take_from_host(SessionId session, TaskId task, Bytes less) {
  Holding& holding = holdings_.at({session, task});
  less = std::min(less, holding.on_host);
  pool_.take_from_host(holding.device, less);
  holding.on_host -= less;
  return less;
}

void Ledger::set_compute(SessionId session, TaskId task, const ComputeNeed& need) {
  Holding& holding = holdings_.at({session, task});
  pool_.remove_task(holding.device, holding.warps);
  holding.warps = resident(need, pool_.spec(holding.device)).warps;
  pool_.add_task(holding.device, holding.warps);
}

void Ledger::end(SessionId session, TaskId task) {
  const auto it = holdings_.find({session, task});
  require(it != holdings_.end(), "only a running task ends");
  const Holding holding = it->second;
  holdings_.erase(it);
  pool_.return_memory(holding.device, holding.memory);
  pool_.take_from_host(holding.device, holding.on_host);
  pool_.remove_task(holding.device, holding.warps);
  const WorkerKey key{session, holding.virtual_device, holding.device};
  --workers_.at(key).tasks;
  drop_if_unused(key);
}

void Ledger::close(SessionId session) {
  for (const TaskId task : tasks(session)) end(session, task);
  for (auto it = workers_.lower_bound({session, 0, {}}); it != workers_.end() && it->first.session == session;) {
    pool_.remove_worker(it->first.device);
    it = workers_.erase(it);
  }
}

}  // namespace heddle::policy
