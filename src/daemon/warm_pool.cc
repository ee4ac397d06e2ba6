// The part of Workers that decides how many stand ready on each device.

#include <algorithm>

#include "daemon/mps_clients.h"
#include "daemon/resumable.h"
#include "daemon/warm_target.h"
#include "daemon/workers.h"

namespace heddle::daemon {
namespace {

// From a task's beginning to the start of its worker's replacement: that costs milliseconds of the very cores on which
// the task makes its first steps.
constexpr Duration kRefillDelay = std::chrono::milliseconds(10);
constexpr Duration kPoolLook = std::chrono::milliseconds(500);  // at a pool that is larger than configured
// A GPU that had no memory for a program has none for workers that nobody waits for.
constexpr Duration kShortOfMemory = std::chrono::seconds(10);

bool awaits_worker(const VirtualDevice& device) {
  return device.task && awaits_executor(device.task->state);
}

// The session will most likely begin its first task soon. One that has a device already is counted there.
bool is_expected(const Session& session, TimePoint now) {
  if (session.failed || session.ending || session.opened == TimePoint{} || now - session.opened > kHelloWindow)
    return false;
  return std::none_of(session.devices.begin(), session.devices.end(), [](const VirtualDevice& device) {
    return device.worker || device.generation != 0 || awaits_worker(device);
  });
}

// Software devices' workers are there in milliseconds, of the cores on which programs make their first steps: only as
// many as are configured.
// Nobody is expected whose work is kept to batch's SMs: that can wait for its worker.
size_t greeted_for(DeviceId device, const Shared& shared) {
  const Registry& registry = shared.registry;
  const auto& devices = registry.devices;
  const std::string model = devices[device.value].config.model.model;
  if (devices[device.value].config.model.kind != DeviceKind::kCuda) return 0;
  size_t expected = 0, place = 0;
  for (const auto& [id, session] : registry.sessions)
    expected += session.model == model && !has_batch_sms(shared, session) && is_expected(session, shared.now());
  if (expected == 0) return 0;
  std::vector<size_t> tasks;
  for (const DeviceState& each : devices) {
    if (each.config.model.model != model) continue;
    if (each.id == device) place = tasks.size();
    tasks.push_back(registry.workers_on(each.id, Worker::State::kBound) + each.wanting.size());
  }
  return spread_sessions(expected, std::move(tasks))[place];
}

// Workers of the kind that serve nobody yet.
size_t coming_on(DeviceId device, Worker::Kind kind, const Registry& registry) {
  return static_cast<size_t>(std::count_if(registry.workers.begin(), registry.workers.end(), [&](const auto& each) {
    const Worker& worker = each.second;
    return worker.device == device && worker.kind == kind && has_no_task_yet(worker);
  }));
}

// Only where the pool had grown. Those on their way become warm first.
void retire_surplus(Workers& workers, const Shared& shared, DeviceId device, Worker::Kind kind, size_t surplus) {
  if (shared.registry.devices[device.value].config.model.kind != DeviceKind::kCuda) return;
  for (auto& [id, worker] : shared.registry.workers) {
    if (surplus == 0) return;
    if (worker.device != device || worker.state != Worker::State::kWarm || worker.kind != kind) continue;
    shared.log->debug("worker {} of device {} is not expected to be needed", id.value, device.value);
    workers.retire(worker);
    --surplus;
  }
}

// How many stand ready for whoever comes.
size_t target_for(DeviceState& state, const Shared& shared, WarmDemand demand) {
  if (shared.now() < state.no_pool_before) return 0;
  demand.configured = shared.config.warm_workers;
  if (state.config.model.kind != DeviceKind::kCuda) return demand.configured;
  if (demand.under_mps && shared.registry.workers_on(state.id) >= kMostMpsClients) return demand.configured;
  while (!state.arrivals.empty() && shared.now() - state.arrivals.front() > kArrivalWindow) state.arrivals.pop_front();
  demand.arrivals = state.arrivals.size();
  demand.context = state.config.context;
  return warm_target(demand);
}

}  // namespace

void Workers::refill(DeviceId device) {
  DeviceState& state = device_of(device);
  held_back_.look(device, recovering(device));
  if (stopping_ || state.health == DeviceState::Health::kFaulted) return;
  serve_outside_mps(device);
  if (recovering(device)) return;
  const bool makes_way = others_come_first(shared_, mps_, state);
  const size_t greeted = greeted_for(device, shared_);
  WarmDemand demand;
  demand.greeted = greeted;
  demand.under_mps = under_mps(device);
  demand.free = free_memory_(device);
  const size_t target = makes_way ? 0 : target_for(state, shared_, demand);
  if (target != shared_.config.warm_workers)
    state.pool_timer = shared_.loop.after(kPoolLook, [this, device] { refill(device); });
  const auto waiting = [&](Worker::Kind kind) {
    return wanting(shared_, mps_, state, kind) +
           (makes_way ? 0 : std::min(to_move(shared_, mps_, state, kind), kMovesAtOnce));
  };
  // MPS starts its server, which takes a quarter of a second, when its first client comes.
  const size_t first = makes_way && under_mps(device) && mps_workers(shared_.registry, device) == 0;
  supply(device, {.kind = Worker::Kind::kBatch, .waiting = waiting(Worker::Kind::kBatch), .shrinks = !makes_way});
  supply(device, {.kind = Worker::Kind::kWhole,
                  .waiting = std::max(waiting(Worker::Kind::kWhole), first),
                  .greeted = std::min(greeted, target),
                  .warm = target,
                  .shrinks = !makes_way});
}

// Whoever waits gets a worker now; the warm ones come one after the other, behind the work that is going on.
void Workers::supply(DeviceId device, const Supply& supply) {
  DeviceState& state = device_of(device);
  const size_t coming = coming_on(device, supply.kind, shared_.registry);
  const size_t enough = supply.waiting + supply.warm;
  if (coming > enough && supply.shrinks) retire_surplus(*this, shared_, device, supply.kind, coming - enough);
  if (coming >= enough) return;
  const size_t awaited = supply.waiting + supply.greeted;
  const bool wanted = coming < awaited;
  const TimePoint next = state.starts_of(supply.kind).next;
  const TimePoint earliest = wanted ? next : std::max(next, state.last_bound + kRefillDelay);
  if (shared_.now() < earliest) return start_later(device, earliest);
  if (const Status started = start(device, supply.kind); !started) {
    start_failed(device, supply.kind, started.error().text, false);
    return start_later(device, state.starts_of(supply.kind).next);
  }
  if (coming + 1 < awaited) refill(device);
}

void Workers::start_later(DeviceId device, TimePoint when) {
  DeviceState& state = device_of(device);
  if (state.start_timer && state.start_at <= when) return;
  state.start_at = when;
  state.start_timer = shared_.loop.at(when, [this, device] {
    device_of(device).start_timer.reset();
    refill(device);
  });
}

void Workers::expect() {
  for (const DeviceState& device : shared_.registry.devices) {
    if (device.config.model.kind == DeviceKind::kCuda) refill(device.id);
  }
}

bool Workers::free_contexts(const MemoryRequest& request) {
  const DeviceId device = request.device;
  DeviceState& state = device_of(device);
  size_t starting = shared_.registry.workers_on(device, Worker::State::kStarting);
  bool any = false;
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device) continue;
    const bool spare = worker.state == Worker::State::kStarting && starting > state.wanting.size();
    if (spare) --starting;
    const bool stands = worker.state == Worker::State::kWarm || worker.state == Worker::State::kKept;
    if (spare) discard(worker);
    if (stands) retire(worker);
    any = any || worker.state == Worker::State::kLeaving;
  }
  if (!any) return false;
  shared_.log->warn("device {} has no memory for a program: workers that serve nobody make room", device.value);
  state.no_pool_before = shared_.now() + kShortOfMemory;
  state.contexts_awaited.push_back(request);
  return true;
}

void contexts_freed(const Shared& shared, DeviceId device) {
  DeviceState& state = shared.registry.devices[device.value];
  if (state.contexts_awaited.empty() || shared.registry.workers_on(device, Worker::State::kLeaving) != 0) return;
  for (MemoryRequest& request : std::exchange(state.contexts_awaited, {}))
    shared.events.post(ContextsFreed{std::move(request)});
}

}  // namespace heddle::daemon
