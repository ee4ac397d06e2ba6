// The part of WorkerExecutor that lets a task go on when its worker has died, or has given it up because its job is
// suspended: in another worker on the same device, with the same ring, memory, modules and tables. Nothing was under
// way that cannot be run again, and the worker's process, with all its threads, is gone (its pidfd says so), so that
// nothing of it writes any more.

#include "daemon/resumable.h"
#include "daemon/task_trace.h"
#include "daemon/worker_executor.h"

namespace heddle::daemon {

std::string WorkerExecutor::obstacle_to_resume(const Worker& worker, const Session& session, VirtualDevice& device,
                                               bool crashed) const {
  if (session.failed || session.ending) return "its session is over";
  const bool suspending = device.task && device.task->state == TaskState::kSuspending;
  if (!device.task || (device.task->state != TaskState::kRunning && !suspending)) return "its task was not running";
  if (!worker.last_fault.empty()) return "its session had failed";
  const protocol::LogState log = device.control ? device.control->log() : protocol::LogState{};
  if (log.task == device.task->serial && log.ended) return "";  // nobody needs to go on
  if (ended_for_a_shared_fault(worker)) return "";              // judged when all of the device are gone
  std::string obstacle = present_obstacle(device);
  if (!obstacle.empty()) return obstacle;
  if (suspending || worker.given_up || worker.terminating) return "";  // it has not died at its work
  DeathsInPlace& deaths = device.resumed.deaths;
  deaths.add({std::max(log.completed, log.shown), crashed, log.at_work(), shared_.now()});
  if (!deaths.too_many()) return "";
  return crashed ? "the worker before it ended at the same place"
                 : "the workers before it ended at the same place, soon after each other";
}

bool WorkerExecutor::ended_for_a_shared_fault(const Worker& worker) const {
  return worker.killed && !worker.died && workers_.recovering(worker.device);
}

void WorkerExecutor::resume(const Worker& worker, Session& session, VirtualDevice& device, const WorkerGone& event) {
  device.worker = nullptr;
  leases_.worker_gone(session, device);
  if (event.certainly) SegmentStore::let_go_all(session, device.index);
  if (say_again(session, device)) return;
  if (worker.given_up || device.task->state == TaskState::kSuspending) {
    shared_.log->info("worker {}, process {}, on device {} has left task {} of session {} ({})", worker.id.value,
                      worker.pid, worker.device.value, device.task->id.value, session.id.value, event.how);
    return events_->executor_lost(session, device);
  }
  if (ended_for_a_shared_fault(worker)) {
    ++device.resumed.count;
    return events_->executor_lost(session, device);
  }
  if (worker.terminating) {
    ++device.terminations.done;
    shared_.log->info(
        "worker {}, process {}, of session {} was terminated for others' sake ({}): another goes on later",
        worker.id.value, worker.pid, session.id.value, event.how);
    return events_->executor_lost(session, device);
  }
  ++device.resumed.count;
  shared_.log->warn(
      "worker {}, process {}, on device {} ended unexpectedly ({}); nothing was under way that cannot be run again: "
      "session {} goes on in another",
      worker.id.value, worker.pid, worker.device.value, event.how, session.id.value);
  events_->executor_lost(session, device);
}

// What the worker may have done and not said. True: its task is over.
bool WorkerExecutor::say_again(Session& session, VirtualDevice& device) {
  const protocol::ControlPage& page = *device.control;
  const protocol::LogState log = page.log();
  if (log.task != device.task->serial) return false;
  const uint64_t known = std::min(log.freed, protocol::ControlPage::kFreedNumbers);
  for (uint64_t index = log.freed - known; index < log.freed; ++index)
    events_->segment_freed(session, device, page.freed(index));
  if (log.ended) events_->finished(session, device, log.unmapped);
  return log.ended;
}

void WorkerExecutor::suspend(const VirtualDevice& device) {
  if (takes_memory(device)) device.worker->connection->send(protocol::Suspend{device.task->serial});
}

// It ends, and executor_lost follows: also where a heddled before this one had asked for it, and the job was resumed
// meanwhile. One that does not end has nothing under way.
void WorkerExecutor::suspended(Worker& worker, const protocol::Suspended& said) {
  const auto [session, device] = shared_.registry.served_by(worker);
  if (!session || !device->task || device->task->serial != said.serial || session->failed || session->ending) return;
  if (said.given_up == 0) return events_->executor_stays(*session, *device);
  if (said.unmapped != 0) SegmentStore::let_go_all(*session, device->index);
  worker.given_up = true;
  workers_.retire(worker, Workers::Until::kServing);
}

}  // namespace heddle::daemon
