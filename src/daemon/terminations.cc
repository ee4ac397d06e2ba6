#include "daemon/terminations.h"

#include <csignal>

#include "daemon/proc_file.h"
#include "daemon/resumable.h"
#include "daemon/spawn.h"

namespace heddle::daemon {
namespace {

// A thread stops on its way back from the kernel: mostly at once, in a driver's call when that returns.
constexpr Duration kLookEvery = std::chrono::microseconds(500);
constexpr int kMostLooks = 20;

}  // namespace

void Terminations::ordered(SessionId id, uint32_t virtual_device) {
  Session* session = shared_.registry.find_session(id);
  if (!session || session->failed || session->ending || virtual_device >= session->devices.size()) return;
  VirtualDevice& device = session->devices[virtual_device];
  Worker* worker = device.worker;
  if (!worker || !device.task || worker->killed || stopping_.contains(worker->id)) return;
  const bool again = worker->terminating;
  if (!again && !leases_.awaits_termination(*session, device)) return;
  const std::string obstacle = present_obstacle(device);
  if (!again && !obstacle.empty()) return leases_.not_terminated(*session, device, obstacle);
  stop(*worker, again);
}

void Terminations::stop(Worker& worker, bool again) {
  note_terminating(shared_, worker, true);
  kill_process(worker.process, SIGSTOP);
  Stopping& stopping = stopping_[worker.id];
  stopping.again = again;
  stopping.timer = shared_.loop.after(kLookEvery, [this, id = worker.id] { look(id); });
}

void Terminations::look(WorkerId id) {
  Worker* worker = shared_.registry.find_worker(id);
  const auto [session, device] = worker ? shared_.registry.served_by(*worker) : std::pair<Session*, VirtualDevice*>{};
  const bool alive = worker && !worker->killed && !has_ended(worker->process);
  if (!alive || !session || !device->task) {
    if (alive) let_go_on(*worker);
    stopping_.erase(id);  // one that has died may have been killed by a heddled before this one: the note stays true
    return;
  }
  Stopping& stopping = stopping_.at(id);
  const bool stopped = all_threads_stopped(worker->pid);
  if (!stopped && ++stopping.looks < kMostLooks) {
    stopping.timer = shared_.loop.after(kLookEvery, [this, id] { look(id); });
    return;
  }
  const bool wanted = stopping.again || leases_.awaits_termination(*session, *device);
  stopping_.erase(id);
  const std::string obstacle = stopped ? present_obstacle(*device) : "its worker does not stop";
  if (wanted && obstacle.empty()) return kill(*worker, *session, *device);
  let_go_on(*worker);
  if (wanted) leases_.not_terminated(*session, *device, obstacle);
}

void Terminations::let_go_on(Worker& worker) {
  kill_process(worker.process, SIGCONT);
  note_terminating(shared_, worker, false);
}

void Terminations::kill(Worker& worker, Session& session, VirtualDevice& device) {
  shared_.log->info("worker {}, process {}, of session {} is terminated: its device {} is wanted", worker.id.value,
                    worker.pid, session.id.value, worker.device.value);
  leases_.terminated(session, device);
  workers_.kill(worker);
  // MPS waits for a client that is stopped. Without a lease it hands nothing over meanwhile.
  if (workers_.under_mps(worker.device)) {
    kill_process(worker.process, SIGCONT);
  } else if (shared_.registry.devices[worker.device.value].config.model.kind == DeviceKind::kCuda) {
    shared_.events.post(WorkerOffDevice{worker.id});
  }
}

}  // namespace heddle::daemon
