// The part of WorkerExecutor that deals with faults: whose they are, and who is told what.

#include "daemon/cuda_codes.h"
#include "daemon/task_trace.h"
#include "daemon/worker_executor.h"

namespace heddle::daemon {
namespace {

// The programs of one user are not told what another's kernels are called.
std::string shared_text(DeviceId device, uint32_t cuda_error) {
  return stringf("another program's kernel %s (%u) on device %lu; under MPS a fault is every program's on the GPU",
                 deed_of(cuda_error), cuda_error, static_cast<unsigned long>(device.value));
}

}  // namespace

void WorkerExecutor::worker_fault(Worker& worker, const protocol::WorkerFault& fault) {
  const auto [session, device] = shared_.registry.served_by(worker);
  const std::string text = protocol::get_text(fault.text);
  worker.last_fault = text;
  if (session) {
    shared_.log->warn("session {} (process {}, {}) faulted on device {} with CUDA error {}: {}", session->id.value,
                      session->pid, session->program, worker.device.value, fault.cuda_error, text);
    if (device->task) trace_task(shared_, "fault", *session, *device->task, device->live, text);
    share_fault(worker, text);
  }
  if (!workers_.under_mps(worker.device)) return;
  const SessionId origin = session ? session->id : SessionId{};
  if (fault.device_lost != 0)
    workers_.recover(worker.device, {shared_text(worker.device, fault.cuda_error), fault.cuda_error, origin, text});
  if (session && !session->ending) events_->fail_session(*session, fault.cuda_error, text);
}

void WorkerExecutor::mps_lost(DeviceId device, const MpsFault& fault) {
  for (auto& [id, session] : shared_.registry.sessions) {
    for (VirtualDevice& each : session.devices) {
      if (!each.worker || each.worker->device != device || session.failed || session.ending) continue;
      const bool own = id == fault.origin, in_flight = fault.cuda_error != 0 && computes(each);
      if (own && fault.own_text.empty()) continue;
      events_->fail_session(session, own || in_flight ? fault.cuda_error : kCudaMpsClientTerminated,
                            own ? fault.own_text : fault.text);
    }
  }
}

void WorkerExecutor::worker_lost(WorkerId id) {
  const Worker* worker = shared_.registry.find_worker(id);
  if (!worker) return;
  const auto [session, device] = shared_.registry.served_by(*worker);
  if (session) died_at_work(*worker, *session, *device);
}

// Known before the GPU's server notices: programs that come in the meantime wait until it serves again, and do not
// fail.
void WorkerExecutor::died_at_work(const Worker& worker, const Session& session, const VirtualDevice& device) {
  if (!computes(device)) return;
  workers_.recover(worker.device,
                   {"another program's worker ended in the middle of its work; under MPS that is a fault "
                    "of every program on the GPU",
                    kCudaIllegalAddress, session.id});
}

// Under MPS one client's fault ends every client of the device (HARDWARE.md, revocation and faults).
void WorkerExecutor::share_fault(const Worker& origin, const std::string& why) {
  if (!shared_.registry.devices[origin.device.value].config.shared_faults) return;
  protocol::DeviceFault message{kCudaIllegalAddress};
  protocol::set_text(message.text, "another program's fault on the same device: " + why);
  for (auto& [id, worker] : shared_.registry.workers) {
    if (id == origin.id || worker.device != origin.device) continue;
    if (worker.state == Worker::State::kKept) workers_.discard(worker);
    if (worker.state == Worker::State::kBound && worker.connection) worker.connection->send(message);
  }
}

}  // namespace heddle::daemon
