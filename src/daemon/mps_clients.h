#pragma once

#include <algorithm>
#include <optional>

#include "daemon/batch_sms.h"
#include "daemon/mps.h"
#include "daemon/registry.h"
#include "daemon/resumable.h"
#include "daemon/warm_target.h"

namespace heddle::daemon {

// Whether one program's fault is every program's there.
inline bool shares_faults(const DeviceState& device, const Mps& mps) {
  return device.config.shared_faults || mps.serves(device.id);
}

// Whether the virtual device is tried (shared_faults.h) by a worker of which a kernel's fault is no client's.
inline bool is_tried_outside_mps(const DeviceState& device, const Mps& mps, std::pair<SessionId, uint32_t> who) {
  return device.health == DeviceState::Health::kTrial && mps.serves(device.id) && device.on_trial.contains(who);
}

// Whether the virtual device's work cannot always be run again, and so is done where no other program's fault ends it.
inline bool is_apart(const Shared& shared, const DeviceState& device, const Mps& mps,
                     std::pair<SessionId, uint32_t> who) {
  const VirtualDevice* found = shared.registry.find_device(who).second;
  return mps.serves(device.id) && found && found->apart;
}

// Whether the programs of a device had a fault in common a short time ago: mostly MPS is back after that, with a
// worker.
inline bool is_behind_fault(const DeviceState& device, TimePoint now) {
  constexpr Duration kBack = std::chrono::seconds(3);
  return device.last_shared_fault != TimePoint{} && now - device.last_shared_fault < kBack;
}

// What kind of worker is to serve the virtual device.
inline Worker::Kind kind_for(const Shared& shared, const Mps& mps, const DeviceState& device,
                             std::pair<SessionId, uint32_t> who) {
  const bool outside = is_tried_outside_mps(device, mps, who) || is_apart(shared, device, mps, who);
  return outside ? Worker::Kind::kOutsideMps : kind_for(shared, who.first);
}

// What kind of worker the task that it serves is to go on in, where that is another: it was tried outside of MPS and
// did not fault; or it does not stay under MPS. None where it stays.
inline std::optional<Worker::Kind> kind_to_move_to(const Shared& shared, const Mps& mps, const DeviceState& device,
                                                   const Worker& worker) {
  if (worker.state != Worker::State::kBound || worker.device != device.id || !worker.last_fault.empty()) return {};
  const std::pair who(worker.session, worker.virtual_device);
  const VirtualDevice* served = shared.registry.served_by(worker).second;
  if (!served || !served->task || device.on_trial.contains(who) || !lasting_obstacle(*served).empty()) return {};
  const Worker::Kind kind = kind_for(shared, mps, device, who);
  return kind == worker.kind ? std::nullopt : std::optional(kind);
}

// How many tasks are to go on in a worker of that kind.
inline size_t to_move(const Shared& shared, const Mps& mps, const DeviceState& device, Worker::Kind kind) {
  const auto& workers = shared.registry.workers;
  return static_cast<size_t>(std::count_if(workers.begin(), workers.end(), [&](const auto& each) {
    return kind_to_move_to(shared, mps, device, each.second) == kind;
  }));
}

// How many wait for a worker of that kind.
inline size_t wanting(const Shared& shared, const Mps& mps, const DeviceState& device, Worker::Kind kind) {
  return static_cast<size_t>(std::count_if(device.wanting.begin(), device.wanting.end(), [&](const auto& who) {
    return kind_for(shared, mps, device, who) == kind;
  }));
}

// How many of a GPU's MPS clients serve programs.
inline size_t serving_clients(const Registry& registry, const DeviceState& device) {
  return static_cast<size_t>(std::count_if(registry.workers.begin(), registry.workers.end(), [&](const auto& each) {
    const Worker& worker = each.second;
    return worker.device == device.id && worker.state == Worker::State::kBound && !worker.outside_mps();
  }));
}

// Whether the GPU's MPS has, or will have, as many clients as it may. Who comes then is served outside of it at `auto`;
// at `on` the scheduler lets nobody come (daemon.cc).
inline bool is_full(Registry& registry, const DeviceState& device) {
  const auto coming = std::count_if(device.wanting.begin(), device.wanting.end(), [&](const auto& who) {
    const VirtualDevice* found = registry.find_device(who).second;
    return found && !found->apart;
  });
  return serving_clients(registry, device) + static_cast<size_t>(coming) >= kMostMpsClients;
}

// Whether it stands ready for its first task, or is starting.
inline bool has_no_task_yet(const Worker& worker) {
  return worker.state == Worker::State::kStarting || worker.state == Worker::State::kWarm;
}

// Whether it stands ready for trials outside of MPS, or is starting for them.
inline bool is_ready_for_trials(const Worker& worker, DeviceId device) {
  return worker.device == device && worker.outside_mps() && has_no_task_yet(worker);
}

// Whether contexts are made for trials just now. All of a GPU's are made one after the other.
inline bool makes_way_for_trials(const Registry& registry, const DeviceState& device) {
  return device.health == DeviceState::Health::kTrial &&
         std::any_of(registry.workers.begin(), registry.workers.end(), [&](const auto& each) {
           return each.second.state == Worker::State::kStarting && is_ready_for_trials(each.second, device.id);
         });
}

// How many workers the GPU's MPS has, or will have.
inline size_t mps_workers(const Registry& registry, DeviceId device) {
  return static_cast<size_t>(std::count_if(registry.workers.begin(), registry.workers.end(), [&](const auto& each) {
    return each.second.device == device && !each.second.outside_mps();
  }));
}

// Whether the contexts of workers that move programs back under MPS, and of workers that nobody has asked for, wait
// until other contexts are created (warm_target.h has the order).
inline bool others_come_first(const Shared& shared, const Mps& mps, const DeviceState& device) {
  ContextsWanted wanted;
  wanted.for_trials = makes_way_for_trials(shared.registry, device);
  for (const Worker::Kind kind : {Worker::Kind::kWhole, Worker::Kind::kBatch}) {
    wanted.waiting += wanting(shared, mps, device, kind);
    wanted.going_on += to_move(shared, mps, device, kind);
  }
  return others_come_first(wanted);
}

inline bool is_mps_client(const Worker& worker, const Mps& mps) {
  return !worker.outside_mps() && mps.serves(worker.device);
}

}  // namespace heddle::daemon
