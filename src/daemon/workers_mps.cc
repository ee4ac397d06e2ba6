// The part of Workers that looks after workers under MPS: taking one off its GPU, and starting anew after a fault.

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>

#include "daemon/cuda_codes.h"
#include "daemon/mps_clients.h"
#include "daemon/workers.h"

namespace heddle::daemon {
namespace {

using protocol::MessageType;

constexpr Duration kTakeOff = std::chrono::seconds(1);         // that MPS may take to terminate a client
constexpr Duration kMpsRetry = std::chrono::milliseconds(20);  // from a refused start to the next
constexpr uint32_t kMpsStarts = 12;                            // refused in a row, until MPS is started anew

}  // namespace

Workers::Workers(Shared& shared, Launch launch, Mps& mps)
    : shared_(shared),
      launch_(std::move(launch)),
      mps_(mps),
      recovery_(
          shared.loop, mps, shared.log,
          {[this](DeviceId device) { recover(device, {"the MPS control daemon of the program's GPU has ended"}); },
           [this](DeviceId device) { recovered(device); }}),
      stopped_(shared) {}

void Workers::connect(FreeMemory free_memory) {
  free_memory_ = std::move(free_memory);
  recovery_.watch_controls();
}

void Workers::stop() {
  stopping_ = true;
  recovery_.stop();
}

bool counts_though_killed(const protocol::Packet& packet) {
  return packet.type == MessageType::kWorkerFault && packet.as<protocol::WorkerFault>().device_lost != 0;
}

bool Workers::recover(DeviceId device, const SharedFault& fault) {
  if (!shares_faults(device_of(device), mps_)) return false;
  if (stopping_ || !recovering_.insert(device).second) return true;
  shared_.log->error("the {} workers of device {} are ended{}: {}", shared_.registry.workers_on(device), device.value,
                     recovery_.begin(device) ? ", and its MPS is started anew" : "", fault.text);
  FaultNote note{fault.origin.first.value, fault.origin.second, fault.cuda_error, fault.kernel};
  protocol::set_text(note.text, fault.text);
  protocol::set_text(note.own_text, fault.own_text);
  shared_.vault.deposit(NoteKind::kFault, device.value, write_note(note), -1);
  shared_.loop.commit();
  shared_.events.post(DeviceFaulted{device, fault});
  size_t at_work = 0;
  for (auto& [id, worker] : shared_.registry.workers) {
    if (worker.device != device || worker.outside_mps) continue;
    const auto served = shared_.registry.served_by(worker).second;
    at_work += served && computes(*served);
    end_client(worker);
  }
  client_gone(device);
  // Their contexts take longer to make than the old ones to end.
  if (!under_mps(device) || !fault.kernel) return true;
  device_of(device).expected_trials = at_work;
  serve_outside_mps(device);
  return true;
}

// Its registered end follows; of one that serves a session, the session's loss with it.
void Workers::end_client(Worker& worker) {
  worker.killed = true;
  if (worker.state != Worker::State::kBound) worker.state = Worker::State::kLeaving;
  worker.patience.reset();
  if (const auto helper = taking_off_.find(worker.id); helper != taking_off_.end()) {
    kill_process(helper->second.child.pidfd, SIGKILL);
    taking_off_.erase(helper);
  }
  kill_process(worker.process, SIGKILL);
}

// Whoever is tried gets a worker, and may before it is known who that is; those that nobody needs any more end.
void Workers::serve_outside_mps(DeviceId device) {
  DeviceState& state = device_of(device);
  size_t wanted = std::max(wanting_outside_mps(state, mps_), state.expected_trials);
  for (auto& [id, worker] : shared_.registry.workers) {
    const bool idle = worker.state == Worker::State::kStarting || worker.state == Worker::State::kWarm;
    if (worker.device != device || !worker.outside_mps || !idle) continue;
    if (wanted > 0) {
      --wanted;
    } else {
      discard(worker);
    }
  }
  for (; wanted > 0; --wanted) {
    if (shared_.now() < state.next_start) return start_later(device, state.next_start);
    const Status started = start(device, true);
    if (!started) start_failed(device, started.error().text, false);
  }
}

void Workers::client_gone(DeviceId device) {
  const auto is_client = [&](const auto& each) { return each.second.device == device && !each.second.outside_mps; };
  const auto& workers = shared_.registry.workers;
  if (!recovering(device) || std::any_of(workers.begin(), workers.end(), is_client)) return;
  shared_.events.post(DeviceLeft{device});
  under_mps(device) ? recovery_.clients_gone(device) : recovered(device);
}

void Workers::recovered(DeviceId device) {
  recovering_.erase(device);
  shared_.events.post(DeviceCleared{device});
}

// A server that has just lost a client, or is starting, admits the next one a little later (HARDWARE.md, p6 retry). One
// that goes on refusing has a client left that does not know of a fault.
void Workers::start_refused(DeviceId device) {
  DeviceState& state = device_of(device);
  const bool few = state.failed_starts < kMpsStarts;
  state.next_start = shared_.now() + (few ? kMpsRetry : start_backoff(state.failed_starts - kMpsStarts));
  if (state.failed_starts % kMpsStarts != 0) return;
  recover(device, {stringf("the MPS of the program's GPU has taken no client %u times in a row", state.failed_starts)});
}

// A client of MPS that is killed with work in flight takes all others of its GPU with it (HARDWARE.md, p4).
Status Workers::take_off(Worker& worker) {
  auto child = mps_.terminate(worker.device, worker.pid);
  if (!child) return tl::unexpected(std::move(child).error());
  const WorkerId id = worker.id;
  auto watch = shared_.loop.watch(child->pidfd.get(), EPOLLIN, [this, id](uint32_t) { taken_off(id, true); });
  if (!watch) return tl::unexpected(std::move(watch).error());
  taking_off_[id] = {std::move(*child), std::move(*watch)};
  worker.patience = shared_.loop.after(kTakeOff, [this, id] { taken_off(id, false); });
  return {};
}

void Workers::taken_off(WorkerId id, bool in_time) {
  const auto found = taking_off_.find(id);
  if (found == taking_off_.end()) return;
  kill_process(found->second.child.pidfd, SIGKILL);  // nothing, mostly: it has ended
  (void)reap(found->second.child.pidfd);
  taking_off_.erase(found);
  Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  worker->patience.reset();
  kill_process(worker->process, SIGKILL);
  if (in_time) shared_.events.post(WorkerOffDevice{id});
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (in_time || !device || !computes(*device)) return;
  recover(worker->device, {"another program was ended in the middle of its work, and MPS did not take it off the GPU",
                           kCudaIllegalAddress});
}

}  // namespace heddle::daemon
