#include "daemon/held_back.h"

#include <csignal>

#include "daemon/mps_clients.h"
#include "daemon/spawn.h"

namespace heddle::daemon {
namespace {

// A worker that is being terminated is left to Terminations, which stops and continues it itself.
bool may_be_held(Registry& registry, const Worker& worker) {
  if (!worker.outside_mps() || worker.killed || worker.terminating) return false;
  const VirtualDevice* served = registry.served_by(worker).second;
  const DeviceState& device = registry.devices[worker.device.value];
  const std::pair who(worker.session, worker.virtual_device);
  if (!served || device.on_trial.contains(who)) return false;
  return served->apart || (device.tried.contains(who) && !device.wanting.empty());
}

}  // namespace

// Whether programs wait for MPS to start, for a trial to end, or for a worker.
bool HeldBack::is_awaited(DeviceId device, bool recovering) const {
  const DeviceState& state = shared_.registry.devices[device.value];
  const TimePoint now = shared_.now();
  const bool trials = !state.on_trial.empty() && now - state.last_shared_fault < kHeldLongest;
  const bool waiting = !state.wanting.empty() && is_behind_fault(state, now);
  // A worker that is stopped cannot return its lease.
  const bool in_time = shared_.config.dispatch.return_limit > 2 * kHeldLongest;
  return in_time && !stopped_ && (recovering || trials || waiting);
}

void HeldBack::look(DeviceId device, bool recovering) {
  const bool awaited = is_awaited(device, recovering);
  Gpu& gpu = gpus_[device];
  if (awaited && shared_.now() >= gpu.next) return hold(gpu, device);
  if (gpu.since) resume(gpu, device);
}

void HeldBack::hold(Gpu& gpu, DeviceId device) {
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device || worker.held_back || !may_be_held(shared_.registry, worker)) continue;
    kill_process(worker.process, SIGSTOP);
    worker.held_back = true;
    shared_.log->debug("worker {} is held back: device {} is busy with what others wait for", id.value, device.value);
    if (gpu.since) continue;
    gpu.since = shared_.now();
    gpu.timer = shared_.loop.after(kHeldLongest, [this, device] { resume(gpus_.at(device), device); });
  }
}

void HeldBack::resume(Gpu& gpu, DeviceId device) {
  const TimePoint now = shared_.now();
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device || !std::exchange(worker.held_back, false)) continue;
    if (!worker.terminating) kill_process(worker.process, SIGCONT);
  }
  const Duration held = now - *gpu.since;
  shared_.log->info("workers outside of device {}'s MPS were held back for {}", device.value, to_string(held));
  gpu.since.reset();
  gpu.next = now + held;
  gpu.timer.reset();
}

void HeldBack::stop() {
  stopped_ = true;
  for (auto& [device, gpu] : gpus_) {
    if (gpu.since) resume(gpu, device);
  }
}

}  // namespace heddle::daemon
