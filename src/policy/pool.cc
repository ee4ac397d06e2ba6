#include "policy/pool.h"

#include <algorithm>

#include "policy/invariant.h"
#include "policy/placement/gate.h"

namespace heddle::policy {

Pool::Pool(std::vector<DeviceSpec> devices) {
  auto fixed = std::make_shared<Fixed>();
  fixed->specs = std::move(devices);
  for (const DeviceSpec& spec : fixed->specs) {
    require(spec.id.value == loads_.size(), "a device's id is its index in the pool");
    auto model = std::find_if(fixed->models.begin(), fixed->models.end(),
                              [&](const Model& known) { return known.name == spec.model; });
    if (model == fixed->models.end()) model = fixed->models.insert(model, Model{spec.model, {}});
    model->devices.push_back(spec.id);
    fixed->model_of.push_back(static_cast<size_t>(model - fixed->models.begin()));
    loads_.push_back({.free = spec.memory, .context = spec.context_memory, .max_workers = spec.max_clients});
  }
  fixed_ = std::move(fixed);
}

uint64_t Pool::max_warps(DeviceId device) const {
  return uint64_t{spec(device).sms} * spec(device).sm.whole.warps;
}

std::optional<size_t> Pool::find_model(std::string_view name) const {
  for (size_t model = 0; model < models(); ++model) {
    if (model_name(model) == name) return model;
  }
  return {};
}

bool Pool::needs_worker(const Request& request, DeviceId device) {
  return request.workers.empty() ||
         std::find(request.workers.begin(), request.workers.end(), device) == request.workers.end();
}

Bytes Pool::need(const Request& request, DeviceId device) const {
  return needs_worker(request, device) ? request.memory + load(device).context : request.memory;
}

bool Pool::fits(const Request& request, DeviceId device) const {
  const DeviceLoad& there = load(device);
  if (request.memory > there.free || request.closed == device) return false;
  if (request.gate && !request.gate->open({request.session, request.virtual_device}, device)) return false;
  if (!needs_worker(request, device)) return true;
  const bool full = there.max_workers != 0 && there.workers >= there.max_workers;
  return !full && there.context <= there.free - request.memory;
}

bool Pool::could_hold(Bytes memory, DeviceId device) const {
  const DeviceSpec& it = spec(device);
  return it.context_memory <= it.memory && memory <= it.memory - it.context_memory;
}

DeviceLoad& Pool::at(DeviceId device) {
  require(has(device), "the device is in the pool");
  return loads_[device.value];
}

void Pool::withhold(DeviceLoad& there) {
  const Bytes unpromised = there.free + there.withheld;
  there.withheld = std::min(there.outside, unpromised);
  there.free = unpromised - there.withheld;
}

void Pool::set_outside(DeviceId device, Bytes used) {
  DeviceLoad& there = at(device);
  there.outside = used;
  withhold(there);
}

void Pool::take_memory(DeviceId device, Bytes amount) {
  DeviceLoad& there = at(device);
  require(amount <= there.free, "a device's memory is never promised twice");
  there.free -= amount;
  there.tasks_memory += amount;
}

void Pool::return_memory(DeviceId device, Bytes amount) {
  DeviceLoad& there = at(device);
  require(amount <= there.tasks_memory, "no more memory returns than was taken");
  there.free += amount;
  there.tasks_memory -= amount;
  withhold(there);
}

void Pool::add_worker(DeviceId device) {
  DeviceLoad& there = at(device);
  require(there.context <= there.free, "a device's memory is never promised twice, for contexts either");
  there.free -= there.context;
  there.contexts_memory += there.context;
  ++there.workers;
}

void Pool::remove_worker(DeviceId device) {
  DeviceLoad& there = at(device);
  require(there.workers > 0, "no more workers go than came");
  there.free += there.context;
  there.contexts_memory -= there.context;
  --there.workers;
  withhold(there);
}

void Pool::add_task(DeviceId device, uint64_t warps) {
  DeviceLoad& there = at(device);
  there.warps += warps;
  ++there.tasks;
}

void Pool::remove_task(DeviceId device, uint64_t warps) {
  DeviceLoad& there = at(device);
  require(there.tasks > 0 && there.warps >= warps, "no more tasks go than came");
  there.warps -= warps;
  --there.tasks;
}

void Pool::put_on_host(DeviceId device, Bytes amount) {
  at(device).on_host += amount;
}

void Pool::take_from_host(DeviceId device, Bytes amount) {
  DeviceLoad& there = at(device);
  require(amount <= there.on_host, "no more memory leaves the host than was put there");
  there.on_host -= amount;
}

}  // namespace heddle::policy
